package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// gcPercentValue is a GOGC: a percentage or "off", kept as -1.
type gcPercentValue struct{ p *int }

func (v gcPercentValue) set(text string) error {
	if text == "off" {
		*v.p = -1
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return errValue
	}
	*v.p = n
	return nil
}

func (v gcPercentValue) text() string {
	if *v.p < 0 {
		return "off"
	}
	return strconv.Itoa(*v.p)
}

func (v gcPercentValue) allowed() string { return "a percentage of 1 or more, or off" }

// memoryLimitValue is a GOMEMLIMIT: bytes or "off", kept as 0.
type memoryLimitValue struct{ p *int64 }

func (v memoryLimitValue) set(text string) error {
	if text == "off" {
		*v.p = 0
		return nil
	}
	n, err := parseBytes(text)
	if err != nil || n < 1<<20 {
		return errValue
	}
	*v.p = n
	return nil
}

func (v memoryLimitValue) text() string {
	if *v.p == 0 {
		return "off"
	}
	return strconv.FormatInt(*v.p, 10)
}

func (v memoryLimitValue) allowed() string {
	return "bytes from 1MiB, plain or as in 2GiB, or off"
}

// quotasValue is a list of tenant:bytes:msgs.
type quotasValue struct{ p *[]TenantQuota }

// set reads each entry from its right end, so that a tenant id may hold
// colons (broker 3.2).
func (v quotasValue) set(text string) error {
	var quotas []TenantQuota
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		rest, msgs, found := cutLast(entry, ':')
		tenant, bytes, found2 := cutLast(rest, ':')
		if !found || !found2 || tenant == "" {
			return errValue
		}
		q := TenantQuota{Tenant: tenant}
		var err error
		if q.BytesPerSec, err = strconv.ParseUint(bytes, 10, 63); err != nil {
			return errValue
		}
		if q.MsgsPerSec, err = strconv.ParseUint(msgs, 10, 63); err != nil {
			return errValue
		}
		quotas = append(quotas, q)
	}
	slices.SortFunc(quotas, func(a, b TenantQuota) int { return strings.Compare(a.Tenant, b.Tenant) })
	for i := 1; i < len(quotas); i++ {
		if quotas[i].Tenant == quotas[i-1].Tenant {
			return errValue
		}
	}
	*v.p = quotas
	return nil
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	at := strings.LastIndexByte(s, sep)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+1:], true
}

func (v quotasValue) text() string {
	entries := make([]string, len(*v.p))
	for i, q := range *v.p {
		entries[i] = q.Tenant + ":" + strconv.FormatUint(q.BytesPerSec, 10) + ":" + strconv.FormatUint(q.MsgsPerSec, 10)
	}
	return strings.Join(entries, ",")
}

func (v quotasValue) allowed() string {
	return "a list of tenant:bytes:messages separated by commas, each tenant once"
}
