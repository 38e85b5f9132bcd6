package felix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	// flushesMetric counts the broker's flushes to its device.
	flushesMetric = "felix_storage_sync_total"
	// maxMetrics bounds what is read of a broker's metrics, in bytes.
	maxMetrics = 4 << 20
)

// flushes reads how often the broker has flushed to its device so far.
func (t Target) flushes(ctx context.Context) (n uint64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("count flushes: %w", err)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.AdminURL+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, errors.New(resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		value, ok := strings.CutPrefix(line, flushesMetric+" ")
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return uint64(f), err
	}
	return 0, errors.New("no " + flushesMetric + " in the broker's metrics")
}
