package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

const (
	addSpending = "INSERT INTO spending (agent, day, micro_usd) VALUES (?, ?, ?)" +
		" ON CONFLICT (agent, day) DO UPDATE SET micro_usd = micro_usd + excluded.micro_usd"
	selectSpending = "SELECT micro_usd FROM spending WHERE agent = ? AND day = ?"
)

// spending is what one record cost.
type spending struct {
	agent string
	cost  domain.MicroUSD
}

// charge adds what the batch's records cost to the ledger.
func (b *batch) charge(ctx context.Context, c Conn) error {
	for _, s := range b.costs {
		if err := exec(ctx, c, addSpending, s.agent, domain.Day(fromMicro(b.at)), int64(s.cost)); err != nil {
			return err
		}
	}
	return nil
}

// Spent returns what an agent cost on the day of t.
func (s *Store) Spent(ctx context.Context, agent string, t time.Time) (domain.MicroUSD, error) {
	var sum int64
	err := s.db.Read(ctx, func(ctx context.Context, c Conn) error {
		st, err := c.Stmt(ctx, selectSpending)
		if err != nil {
			return err
		}
		err = st.QueryRowContext(ctx, agent, domain.Day(t)).Scan(&sum)
		if errors.Is(err, sql.ErrNoRows) {
			sum, err = 0, nil
		}
		return err
	})
	return domain.MicroUSD(sum), err
}
