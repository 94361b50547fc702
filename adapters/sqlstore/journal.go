package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// The fence and the bookkeeping of an append are one statement: it changes
// the session's row only while the journal is where the writer thinks it is
// and no other instance holds the lease.
const (
	appendFence = "seq = ?, updated_at = CASE WHEN updated_at < ? THEN ? ELSE updated_at END WHERE id = ? AND seq = ?" +
		" AND NOT EXISTS (SELECT 1 FROM leases WHERE session = sessions.id AND instance <> ?) RETURNING num"
	advance       = "UPDATE sessions SET " + appendFence
	advanceTitled = "UPDATE sessions SET title = ?, " + appendFence
	selectFence   = "SELECT seq, EXISTS (SELECT 1 FROM leases WHERE session = sessions.id AND instance <> ?) FROM sessions WHERE id = ?"
	insertRecords = "INSERT INTO records (pos, at, kind, version, sum, payload) VALUES (?, ?, ?, ?, ?, ?)"
	selectTail    = "SELECT num, seq FROM sessions WHERE id = ?"
	selectRecords = "SELECT at, kind, version, sum, payload FROM records WHERE pos > ? AND pos <= ? ORDER BY pos"
)

// Append adds records after a position.
func (s *Store) Append(ctx context.Context, id domain.SessionID, after domain.Seq, recs ...domain.Record) (domain.Seq, error) {
	if len(recs) == 0 {
		return after, nil
	}
	b, err := newBatch(id, after, s.clock().UnixMicro(), recs)
	if err != nil {
		return 0, err
	}
	err = s.db.Write(ctx, func(ctx context.Context, c Conn) error {
		num, err := s.advance(ctx, c, b)
		if err != nil {
			return err
		}
		if err := b.insert(ctx, c, num); err != nil {
			return err
		}
		return b.charge(ctx, c)
	})
	if err != nil {
		return 0, err
	}
	return b.last, nil
}

// batch is the records of one append, ready to be inserted.
type batch struct {
	id    domain.SessionID
	after domain.Seq
	last  domain.Seq
	at    int64
	title *string // set by the newest TitleSet
	costs []spending
	rows  []payload
	sums  []int64
}

func newBatch(id domain.SessionID, after domain.Seq, at int64, recs []domain.Record) (*batch, error) {
	b := &batch{id: id, after: after, last: after + domain.Seq(len(recs)), at: at}
	b.rows, b.sums = make([]payload, len(recs)), make([]int64, len(recs))
	var sums summer
	for i, rec := range recs {
		p, err := encode(rec)
		if err != nil {
			return nil, err
		}
		if t, ok := rec.(domain.TitleSet); ok {
			b.title = &t.Title
		}
		if agent, cost := domain.Spending(rec); cost > 0 {
			b.costs = append(b.costs, spending{agent, cost})
		}
		b.rows[i] = p
		b.sums[i] = sums.checksum(id, after+domain.Seq(i)+1, recordRow{at: at, kind: p.kind, ver: p.version, body: p.body()})
	}
	return b, nil
}

// advance moves the session's row to the batch's last position and returns
// the session's number.
func (s *Store) advance(ctx context.Context, c Conn, b *batch) (int64, error) {
	if b.last > maxSeq {
		return 0, s.fenced(ctx, c, b) // no journal is that long
	}
	query, args := advance, []any{int64(b.last), b.at, b.at, string(b.id), int64(b.after), s.instance}
	if b.title != nil {
		query, args = advanceTitled, append([]any{*b.title}, args...)
	}
	st, err := c.Stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	var num int64
	err = st.QueryRowContext(ctx, args...).Scan(&num)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, s.fenced(ctx, c, b)
	}
	return num, err
}

// fenced tells why an append was refused.
func (s *Store) fenced(ctx context.Context, c Conn, b *batch) error {
	st, err := c.Stmt(ctx, selectFence)
	if err != nil {
		return err
	}
	var seq int64
	var foreign bool
	err = st.QueryRowContext(ctx, s.instance, string(b.id)).Scan(&seq, &foreign)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return domain.NoSession(b.id)
	case err != nil:
		return err
	case foreign:
		return domain.Errorf(domain.Conflict, "Session %s is owned by another process", b.id).With("sessionId", string(b.id))
	}
	return domain.Errorf(domain.Conflict,
		"The journal of session %s is at position %d, not at %d", b.id, seq, b.after).With("sessionId", string(b.id))
}

// insert writes the rows, as few statements as there are bits in their
// number: the lengths are powers of two, so that few statements exist and
// each is prepared once.
func (b *batch) insert(ctx context.Context, c Conn, num int64) error {
	const longest = 32
	for from := 0; from < len(b.rows); {
		n := longest
		for n > len(b.rows)-from {
			n /= 2
		}
		args := make([]any, 0, 6*n)
		for i := from; i < from+n; i++ {
			p := b.rows[i]
			args = append(args, place(num, b.after+domain.Seq(i)+1), b.at, p.kind, p.version, b.sums[i], p.value())
		}
		if err := exec(ctx, c, insertRecords+strings.Repeat(", (?, ?, ?, ?, ?, ?)", n-1), args...); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// A page of records is read at once and handed out with nothing held: a
// reader may be as slow as its client, leave, or use the store in its loop,
// and no connection and no snapshot waits for it.
const (
	pageRecords = 1024
	pageBytes   = 1 << 20
)

// Records yields what follows a position, as of the moment the loop starts.
func (s *Store) Records(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
	return func(yield func(domain.Entry, error) bool) {
		p := &pager{store: s, id: id, next: max(after, 0)}
		for p.more() {
			entries, err := p.page(ctx)
			for _, e := range entries {
				if ctx.Err() != nil {
					err = domain.WrapError(domain.Cancelled, context.Cause(ctx), "The operation was cancelled")
					break
				}
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(domain.Entry{}, err)
				return
			}
		}
	}
}

// pager reads a journal page by page up to the end it found first. Journals
// only grow, so what it reads later is as it was then.
type pager struct {
	store *Store
	id    domain.SessionID
	num   int64
	next  domain.Seq // the position before the next page
	last  domain.Seq
	begun bool
	sums  summer
}

func (p *pager) more() bool { return !p.begun || p.next < p.last }

// page reads the next page. Entries may come beside an error: they precede
// the place where it happened.
func (p *pager) page(ctx context.Context) ([]domain.Entry, error) {
	var entries []domain.Entry
	var damage error
	err := p.store.db.Read(ctx, func(ctx context.Context, c Conn) error {
		entries, damage = nil, nil
		if err := p.begin(ctx, c); err != nil || !p.more() {
			return err
		}
		var err error
		if entries, damage, err = p.scan(ctx, c); err != nil {
			return err
		}
		if damage == nil && len(entries) == 0 {
			damage = errors.New("records are missing")
		}
		if damage != nil {
			damage = p.explain(ctx, c, damage)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.next += domain.Seq(len(entries))
	return entries, damage
}

// begin finds the session and the end of its journal.
func (p *pager) begin(ctx context.Context, c Conn) error {
	if p.begun {
		return nil
	}
	num, seq, err := p.tail(ctx, c)
	if err != nil {
		return err
	}
	p.num, p.last, p.begun = num, domain.Seq(seq), true
	return nil
}

func (p *pager) tail(ctx context.Context, c Conn) (num, seq int64, err error) {
	st, err := c.Stmt(ctx, selectTail)
	if err != nil {
		return 0, 0, err
	}
	err = st.QueryRowContext(ctx, string(p.id)).Scan(&num, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		err = domain.NoSession(p.id)
	}
	return num, seq, err
}

// explain turns damage into the error to report: a session deleted while it
// was read looks like a damaged one.
func (p *pager) explain(ctx context.Context, c Conn, damage error) error {
	num, _, err := p.tail(ctx, c)
	switch {
	case err != nil:
		return err
	case num != p.num:
		return domain.NoSession(p.id)
	}
	return corrupt(p.id, damage)
}

// scan reads rows until the page is full. damage tells that the row behind
// the entries is not what was written.
func (p *pager) scan(ctx context.Context, c Conn) (entries []domain.Entry, damage, err error) {
	st, err := c.Stmt(ctx, selectRecords)
	if err != nil {
		return nil, nil, err
	}
	rows, err := st.QueryContext(ctx, place(p.num, p.next), place(p.num, p.last))
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	entries = make([]domain.Entry, 0, min(int(p.last-p.next), pageRecords))
	for size := 0; size < pageBytes && len(entries) < pageRecords && rows.Next(); {
		var row recordRow
		if err := rows.Scan(&row.at, &row.kind, &row.ver, &row.sum, &row.body); err != nil {
			return entries, nil, err
		}
		seq := p.next + domain.Seq(len(entries)) + 1
		if p.sums.checksum(p.id, seq, row) != row.sum {
			return entries, errors.New("a record's checksum is wrong"), nil
		}
		rec, err := decode(row.kind, row.ver, row.body)
		if err != nil {
			return entries, err, nil
		}
		entries = append(entries, domain.Entry{Seq: seq, At: fromMicro(row.at), Record: rec})
		size += len(row.body)
	}
	return entries, nil, rows.Err()
}
