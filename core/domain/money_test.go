package domain_test

import (
	"math"
	"testing"
	"time"

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
	endless, known := domain.ModelInfo{InputPrice: math.MaxFloat64}.Cost(domain.Usage{Input: math.MaxInt64})
	if sum := endless + endless; !known || sum <= 0 || domain.Dollars(math.Inf(-1)) >= 0 || domain.Dollars(math.NaN()) != 0 {
		t.Errorf("what costs without bounds costs %d", endless)
	}
	if domain.Dollars(1.5) != 1_500_000 || domain.MicroUSD(250_000).Dollars() != 0.25 {
		t.Error("dollars are not what they were")
	}
}

func TestMicroUSD_Words(t *testing.T) {
	for amount, want := range map[domain.MicroUSD]string{
		0: "$0.00", 1: "$0.000001", 10: "$0.00001", 1500: "$0.0015", 10_000: "$0.01", 1_500_000: "$1.50", 1_234_560: "$1.23456", 20_000_000: "$20.00", -5000: "$-0.005",
	} {
		if got := amount.String(); got != want {
			t.Errorf("%d is %s, want %s", int64(amount), got, want)
		}
	}
	var none *domain.MicroUSD
	one := domain.MicroUSD(1)
	if none.Plus(none) != nil || none.Cost() != nil || *none.Plus(&one) != 1 || *one.Plus(&one) != 2 || *(&one).Plus(none) != 1 || one != 1 {
		t.Error("unknown amounts do not add up")
	}
}

func TestDay(t *testing.T) {
	east := time.FixedZone("", 14*60*60)
	for _, tt := range []struct {
		at   time.Time
		want int64
	}{
		{time.Unix(0, 0), 0}, {time.Unix(86399, 0), 0}, {time.Unix(86400, 0), 1}, {time.Unix(-1, 0), -1}, {time.Unix(-86400, 0), -1},
		{time.Date(1970, 1, 2, 13, 59, 0, 0, east), 0}, {time.Date(1970, 1, 2, 14, 0, 0, 0, east), 1},
	} {
		if got := domain.Day(tt.at); got != tt.want {
			t.Errorf("%v is day %d, want %d", tt.at, got, tt.want)
		}
	}
}
