-- Times are Unix milliseconds.
CREATE TABLE posts (
    n    INTEGER PRIMARY KEY AUTOINCREMENT,
    at   INTEGER NOT NULL,
    who  TEXT    NOT NULL,
    tag  TEXT    NOT NULL,
    text TEXT    NOT NULL
) STRICT;
