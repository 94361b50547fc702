package sqlstore

import (
	"encoding/binary"
	"hash/crc32"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// sessionRow is a row of the table sessions. It is comparable, so that an
// update that changes nothing is seen.
type sessionRow struct {
	Num        int64  `db:"num"` // the session's number in this database
	ID         string `db:"id"`
	Key        string `db:"key"`
	Label      string `db:"label"`
	Agent      string `db:"agent"`
	Cwd        string `db:"cwd"`
	CwdGiven   string `db:"cwd_given"`
	Additional string `db:"additional"` // JSON list of texts; "" when there is none
	Workspace  string `db:"workspace"`
	Title      string `db:"title"`
	Parent     string `db:"parent"`
	Client     string `db:"client"`
	Start      int64  `db:"start"`
	Seq        int64  `db:"seq"` // position of the newest record
	CreatedAt  int64  `db:"created_at"`
	UpdatedAt  int64  `db:"updated_at"`
}

// sessionColumns are the columns a session is made of, without num and seq.
const sessionColumns = "id, key, label, agent, cwd, cwd_given, additional, workspace, title, parent, client, start, created_at, updated_at"

// toRow checks a session and turns it into a row without a number and a
// position.
func toRow(s domain.Session) (sessionRow, error) {
	if err := s.Validate(); err != nil {
		return sessionRow{}, err
	}
	row := sessionRow{
		ID: string(s.ID), Key: s.Key, Label: s.Label, Agent: s.Agent,
		Cwd: s.Cwd, CwdGiven: s.CwdGiven, Additional: encodeTexts(s.Additional), Workspace: s.Workspace,
		Title: s.Title, Parent: string(s.Parent), Client: s.Client,
		Start: int64(s.Start), CreatedAt: s.CreatedAt.UnixMicro(), UpdatedAt: s.UpdatedAt.UnixMicro(),
	}
	for _, t := range []string{
		row.ID, row.Key, row.Label, row.Agent, row.Cwd, row.CwdGiven, row.Additional, row.Workspace, row.Title, row.Parent, row.Client,
	} {
		if !utf8.ValidString(t) {
			return sessionRow{}, domain.Errorf(domain.InvalidArgument, "A text of session %s is not valid UTF-8", s.ID)
		}
	}
	return row, nil
}

// values are the columns in the order of sessionColumns.
func (row sessionRow) values() []any {
	return []any{
		row.ID, row.Key, row.Label, row.Agent, row.Cwd, row.CwdGiven, row.Additional, row.Workspace,
		row.Title, row.Parent, row.Client, row.Start, row.CreatedAt, row.UpdatedAt,
	}
}

func (row sessionRow) session() (domain.Session, error) {
	additional, err := decodeTexts(row.Additional)
	if err != nil {
		return domain.Session{}, corrupt(domain.SessionID(row.ID), err)
	}
	return domain.Session{
		ID: domain.SessionID(row.ID), Key: row.Key, Label: row.Label, Agent: row.Agent,
		Cwd: row.Cwd, CwdGiven: row.CwdGiven, Additional: additional, Workspace: row.Workspace,
		Title: row.Title, Parent: domain.SessionID(row.Parent), Client: row.Client,
		Start: domain.Seq(row.Start), CreatedAt: fromMicro(row.CreatedAt), UpdatedAt: fromMicro(row.UpdatedAt),
	}, nil
}

func fromMicro(us int64) time.Time { return time.UnixMicro(us).UTC() }

func encodeTexts(texts []string) string {
	if texts == nil {
		return ""
	}
	w := writer{buf: []byte{'['}}
	for _, t := range texts {
		w.sep()
		w.quote(t)
	}
	return string(append(w.buf, ']'))
}

func decodeTexts(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	r := &reader{s: s}
	texts := listOf(r, (*reader).text)
	r.end()
	return texts, r.err
}

// recordRow is a row of the table records. Its key, pos, is the session's
// number times 2^32 plus the record's position: the records of a session lie
// side by side, and loading them is one range scan of the table itself.
type recordRow struct {
	at   int64
	kind string
	ver  int
	sum  int64
	body string
}

// place returns the key of a record.
func place(num int64, seq domain.Seq) int64 { return num<<32 + int64(seq) }

// maxSeq is the last position a session can have.
const maxSeq = 1<<32 - 1

// castagnoli is the polynomial that processors compute by themselves.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers all that makes a record what it is, its session and place
// included, so that a flipped bit, a lost page and rows that changed places
// are all seen. CRC-32C finds every burst of up to 32 bits and misses one in
// four thousand million other damages, at about 50 ns a record; a
// cryptographic hash would cost ten times that and protect no better, because
// who can write the file can write the hash.
func (c *summer) checksum(id domain.SessionID, seq domain.Seq, row recordRow) int64 {
	fixed := c.buf[:28]
	binary.LittleEndian.PutUint64(fixed[0:], uint64(seq))
	binary.LittleEndian.PutUint64(fixed[8:], uint64(row.at))
	binary.LittleEndian.PutUint64(fixed[16:], uint64(row.ver))
	binary.LittleEndian.PutUint32(fixed[24:], uint32(len(row.kind)))
	sum := crc32.Update(0, castagnoli, fixed)
	sum = c.add(sum, row.kind)
	sum = c.add(sum, string(id))
	return int64(c.add(sum, row.body))
}

// summer computes checksums with one buffer.
type summer struct{ buf [1024]byte }

// add goes on with a text, piece by piece to spare a copy of it.
func (c *summer) add(sum uint32, s string) uint32 {
	for len(s) > 0 {
		n := copy(c.buf[:], s)
		sum = crc32.Update(sum, castagnoli, c.buf[:n])
		s = s[n:]
	}
	return sum
}

// corrupt is the error for one damaged session. Others go on.
func corrupt(id domain.SessionID, cause error) error {
	return domain.WrapError(domain.StoreCorrupt, cause,
		"The stored data of session "+string(id)+" is damaged; other sessions are not affected").
		With("sessionId", string(id)).With("kind", "corrupt")
}
