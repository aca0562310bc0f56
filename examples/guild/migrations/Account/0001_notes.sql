CREATE TABLE notes (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,                -- Unix milliseconds
    who    TEXT    NOT NULL,
    tag    TEXT    NOT NULL,
    text   TEXT    NOT NULL,
    away   INTEGER NOT NULL,                -- 1: it came while no device was connected
    unread INTEGER NOT NULL DEFAULT 1
) STRICT;
