package domain

import (
	"math"
	"strconv"
	"time"
)

// MicroUSD is an amount of money in millionths of a US dollar.
type MicroUSD int64

// Dollars returns the amount in US dollars.
func (m MicroUSD) Dollars() float64 { return float64(m) / 1e6 }

// Dollars makes an amount of US dollars, rounded to the millionth.
func Dollars(d float64) MicroUSD { return micro(d * 1e6) }

// mostMoney bounds amounts, so that sums of them do not overflow.
const mostMoney = 1 << 50 // a billion dollars

// micro rounds millionths of a US dollar. What is no number is nothing.
func micro(d float64) MicroUSD {
	if math.IsNaN(d) {
		return 0
	}
	return MicroUSD(math.Round(min(max(d, -mostMoney), mostMoney)))
}

// Day numbers the days of UTC that costs are counted by, from 1970-01-01 on.
func Day(t time.Time) int64 {
	const seconds = 24 * 60 * 60
	day := t.Unix() / seconds
	if t.Unix()%seconds < 0 {
		day--
	}
	return day
}

// Plus adds two amounts of which either may be unknown; nil when both are.
func (m *MicroUSD) Plus(n *MicroUSD) *MicroUSD {
	switch {
	case m == nil:
		return n
	case n == nil:
		return m
	}
	sum := *m + *n
	return &sum
}

// Cost returns an amount as clients are told it; nil when it is unknown.
func (m *MicroUSD) Cost() *Cost {
	if m == nil {
		return nil
	}
	return &Cost{Amount: m.Dollars(), Currency: "USD"}
}

// String returns the amount as people read it: "$1.50", with as many digits as
// small amounts need.
func (m MicroUSD) String() string {
	digits := 2
	for unit := MicroUSD(10_000); m != 0 && m%unit != 0 && digits < 6; unit /= 10 {
		digits++
	}
	return "$" + strconv.FormatFloat(m.Dollars(), 'f', digits, 64)
}

// Cost works out what a request cost by the model's prices, its cached parts
// at their own. It is false when the prices are unknown.
func (i ModelInfo) Cost(u Usage) (MicroUSD, bool) {
	if i.InputPrice <= 0 && i.OutputPrice <= 0 {
		return 0, false
	}
	read, write := i.CacheReadPrice, i.CacheWritePrice
	if read <= 0 {
		read = i.InputPrice
	}
	if write <= 0 {
		write = i.InputPrice
	}
	plain := max(u.Input-u.CachedRead-u.CachedWrite, 0)
	// A dollar per million tokens is a millionth of a dollar per token.
	sum := float64(plain)*i.InputPrice + float64(u.CachedRead)*read +
		float64(u.CachedWrite)*write + float64(u.Output)*i.OutputPrice
	return micro(sum), true
}
