CREATE TABLE board (
    lot   TEXT PRIMARY KEY,
    step  INTEGER NOT NULL,     -- the lot's own count of its changes: a higher one is newer
    facts TEXT    NOT NULL      -- JSON
) STRICT;
