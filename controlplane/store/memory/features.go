package memory

import "slices"

type featureBody struct {
	Feature string `json:"feature"`
}

func (s *State) enableFeature(b featureBody) ([]string, error) {
	lacking := []string{}
	if slices.Contains(s.features, b.Feature) {
		return lacking, nil
	}
	for _, n := range s.nodes.sorted {
		if n.Status.Lifecycle.Serving() && !slices.Contains(n.Spec.Features, b.Feature) {
			lacking = append(lacking, n.NodeID)
		}
	}
	if len(lacking) == 0 {
		s.features = append(slices.Clone(s.features), b.Feature)
		slices.Sort(s.features)
	}
	return lacking, nil
}
