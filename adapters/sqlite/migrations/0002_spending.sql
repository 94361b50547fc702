-- What agents cost, by day. It outlives the sessions.

-- day counts the days of UTC from 1970-01-01 on.
CREATE TABLE spending (
	agent     TEXT    NOT NULL,
	day       INTEGER NOT NULL,
	micro_usd INTEGER NOT NULL,
	PRIMARY KEY (agent, day)
) STRICT, WITHOUT ROWID;
