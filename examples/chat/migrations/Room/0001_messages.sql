CREATE TABLE members (
    name    TEXT PRIMARY KEY,
    removed INTEGER NOT NULL DEFAULT 0      -- 1: by the owner, and may not come back
) STRICT;

-- Times are Unix milliseconds. AUTOINCREMENT: a number is never used twice, also when old messages go.
CREATE TABLE messages (
    n    INTEGER PRIMARY KEY AUTOINCREMENT,
    at   INTEGER NOT NULL,
    who  TEXT    NOT NULL,
    text TEXT    NOT NULL
) STRICT;
