package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// The bounds of a tenant's rules. Every exchange reads them all.
const (
	maxRules       = 10_000 // policies, and as many groupings
	maxSeedRules   = 1000   // of each, in one bootstrap
	maxSubject     = 4096   // bytes; an issuer and a group fit
	maxDisplayName = 1024   // bytes
)

// Policies are the rules whose objects are inside the caller's rbac.view scopes
// (control plane 4.9).
func (s *Service) Policies(ctx context.Context, c *Caller, tenant string) ([]model.Policy, error) {
	if err := s.requireTenant(ctx, c, tenant); err != nil {
		return nil, err
	}
	scopes, err := s.requireScope(ctx, c, rbac.RBACView)
	if err != nil {
		return nil, err
	}
	policies, err := s.store.Policies(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(policies, func(p model.Policy) bool { return !inScopes(tenant, scopes, p.Object) }), nil
}

// inScopes says whether a rule's object is inside one of the scopes. A text
// that is no object belongs to the tenant as a whole.
func inScopes(tenant string, scopes []rbac.Object, text string) bool {
	object, err := rbac.ParseObject(text)
	if err != nil {
		object = rbac.Tenant(tenant)
	}
	return contained(scopes, object)
}

func contained(scopes []rbac.Object, object rbac.Object) bool {
	return slices.ContainsFunc(scopes, func(scope rbac.Object) bool { return scope.Contains(object) })
}

// AddPolicy lets a subject do something. The object must be inside one of the
// caller's rbac.policy.manage scopes; no action on resources allows it (control
// plane 16.5).
func (s *Service) AddPolicy(ctx context.Context, c *Caller, tenant string, p model.Policy) error {
	if err := s.managePolicy(ctx, c, tenant, p, s.checkPolicy); err != nil {
		return err
	}
	policies, err := s.store.Policies(ctx, tenant)
	if err != nil {
		return err
	}
	if len(policies) >= maxRules && !slices.Contains(policies, p) {
		return tooManyRules("policies")
	}
	return s.store.AddPolicy(ctx, tenant, p)
}

// RemovePolicy takes a rule back, under the conditions of AddPolicy, except that
// the action need not fit the object: a rule that gives nothing can go.
func (s *Service) RemovePolicy(ctx context.Context, c *Caller, tenant string, p model.Policy) error {
	parse := func(tenant string, p model.Policy) (rbac.Object, error) {
		object, err := rbac.ParseObject(p.Object)
		if _, known := rbac.ParseAction(p.Action); !known {
			err = errors.New("the action is not known")
		}
		return object, err
	}
	if err := s.managePolicy(ctx, c, tenant, p, parse); err != nil {
		return err
	}
	return s.store.RemovePolicy(ctx, tenant, p)
}

func (s *Service) managePolicy(ctx context.Context, c *Caller, tenant string, p model.Policy,
	parse func(string, model.Policy) (rbac.Object, error)) error {
	if err := s.requireTenant(ctx, c, tenant); err != nil {
		return err
	}
	scopes, err := s.requireScope(ctx, c, rbac.RBACPolicyManage)
	if err != nil {
		return err
	}
	object, err := parse(tenant, p)
	if err != nil {
		return invalid("%v", err)
	}
	if !contained(scopes, object) {
		return s.lacks(ctx, c, "this needs "+rbac.RBACPolicyManage.String()+" over "+clip(object.String()))
	}
	return nil
}

// checkPolicy says why a rule cannot be one of the tenant's.
func (s *Service) checkPolicy(tenant string, p model.Policy) (rbac.Object, error) {
	if err := checkSubject(p.Subject); err != nil {
		return rbac.Object{}, fmt.Errorf("subject %w", err)
	}
	rule, err := rbac.ParseRule(p.Action, p.Object)
	if err != nil {
		return rbac.Object{}, err
	}
	if !rule.Object.Within(tenant) {
		return rbac.Object{}, errors.New("the object is of another tenant")
	}
	for _, name := range namesOf(rule.Object) {
		if err := s.validateName(name[0], name[1]); err != nil {
			return rbac.Object{}, err
		}
	}
	return rule.Object, nil
}

// namesOf lists the names in an object that must be possible ones, with their
// kinds; what stands for all names is none.
func namesOf(o rbac.Object) [][2]string {
	names := [][2]string{{"tenant", o.Tenant}, {"namespace", o.Namespace}, {o.Kind.String(), o.Name}}
	switch o.Kind {
	case rbac.KindGroup:
		names = append(names[:2], [2]string{"stream", o.Name}, [2]string{"group", o.Item})
	case rbac.KindNode:
		names = nil // node ids have a grammar of their own
	}
	return slices.DeleteFunc(names, func(name [2]string) bool { return name[1] == "" || name[1] == rbac.Any })
}

func checkSubject(subject string) error { return checkText(subject, maxSubject) }

// checkText refuses what no backend could keep, or no log show as it is.
func checkText(text string, most int) error {
	if strings.TrimSpace(text) == "" || len(text) > most || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("is blank, has more than %d bytes or holds control characters", most)
	}
	return nil
}

func tooManyRules(what string) *Refusal {
	return &Refusal{
		Status: http.StatusConflict, Code: CodeConflict,
		Message: fmt.Sprintf("the tenant has %d %s, which is the most; grant roles and wider objects instead", maxRules, what),
	}
}
