-- Sessions and their journals.

PRAGMA application_id = 0x42525448; -- "BRTH"

-- num numbers sessions in this file; records and nothing else refer to it.
-- seq is the position of the newest record. Times are microseconds since 1970.
CREATE TABLE sessions (
	num        INTEGER PRIMARY KEY,
	id         TEXT    NOT NULL UNIQUE,
	key        TEXT    NOT NULL UNIQUE,
	label      TEXT    NOT NULL,
	agent      TEXT    NOT NULL,
	cwd        TEXT    NOT NULL,
	cwd_given  TEXT    NOT NULL,
	additional TEXT    NOT NULL,
	workspace  TEXT    NOT NULL,
	title      TEXT    NOT NULL,
	parent     TEXT    NOT NULL,
	client     TEXT    NOT NULL,
	start      INTEGER NOT NULL,
	seq        INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX sessions_label ON sessions (label) WHERE label <> '';

-- The list order. An append moves its session in here and in no other index:
-- that is why sessions_cwd does not hold the time.
CREATE INDEX sessions_recent ON sessions (updated_at, id);
CREATE INDEX sessions_cwd ON sessions (cwd);

-- pos is sessions.num * 2^32 + position: one range of the table itself holds
-- a journal in order. payload is JSON text, or the bytes of a record of an
-- unknown kind. sum covers the whole record.
CREATE TABLE records (
	pos     INTEGER PRIMARY KEY,
	at      INTEGER NOT NULL,
	kind    TEXT    NOT NULL,
	version INTEGER NOT NULL,
	sum     INTEGER NOT NULL,
	payload ANY     NOT NULL
) STRICT;

-- Who serves a session. A row counts only while its instance holds the lock
-- on its file in instances/.
CREATE TABLE leases (
	session  TEXT NOT NULL PRIMARY KEY,
	instance TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE schema_migrations (
	version    INTEGER PRIMARY KEY,
	name       TEXT    NOT NULL,
	checksum   TEXT    NOT NULL,
	applied_at INTEGER NOT NULL
) STRICT;
