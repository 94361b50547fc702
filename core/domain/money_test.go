package domain_test

import (
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestModelInfo_Cost(t *testing.T) {
	priced := domain.ModelInfo{InputPrice: 3, OutputPrice: 15, CacheReadPrice: 0.3, CacheWritePrice: 3.75}
	for name, c := range map[string]struct {
		info  domain.ModelInfo
		usage domain.Usage
		want  domain.MicroUSD
		known bool
	}{
		"unknown prices": {usage: domain.Usage{Input: 100}},
		"nothing used":   {info: priced, known: true},
		"plain":          {info: priced, usage: domain.Usage{Input: 1_000_000, Output: 100_000}, want: 4_500_000, known: true},
		"cached": {
			info: priced, usage: domain.Usage{Input: 1000, CachedRead: 800, CachedWrite: 100, Output: 10},
			want: 300 + 240 + 375 + 150, known: true,
		},
		"no cache price": {
			info:  domain.ModelInfo{InputPrice: 2, OutputPrice: 4},
			usage: domain.Usage{Input: 10, CachedRead: 10, Output: 1}, want: 24, known: true,
		},
		"more cached than counted": {info: priced, usage: domain.Usage{Input: 1, CachedRead: 10}, want: 3, known: true},
		"output only":              {info: domain.ModelInfo{OutputPrice: 10}, usage: domain.Usage{Input: 5, Output: 3}, want: 30, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, known := c.info.Cost(c.usage); got != c.want || known != c.known {
				t.Errorf("cost %d, %v; want %d, %v", got, known, c.want, c.known)
			}
		})
	}
	if domain.Dollars(1.5) != 1_500_000 || domain.MicroUSD(250_000).Dollars() != 0.25 {
		t.Error("dollars are not what they were")
	}
}
