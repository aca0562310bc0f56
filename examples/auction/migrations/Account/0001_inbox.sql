-- The lots that this bidder follows, and the last round in which they bid there.
CREATE TABLE watching (
    lot   TEXT PRIMARY KEY,
    round INTEGER
) STRICT;

CREATE TABLE notes (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    kind   TEXT    NOT NULL,            -- outbid, won, lost, sold
    lot    TEXT    NOT NULL,
    who    TEXT    NOT NULL,            -- who bid, or won
    amount INTEGER NOT NULL,
    away   INTEGER NOT NULL,            -- 1: it came while no tab was open
    unread INTEGER NOT NULL DEFAULT 1
) STRICT;
