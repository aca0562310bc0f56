-- The Weir Rooms: an auction house that never closes. README.md follows one bid through this file.
local catalogue = require "catalogue"

local Account, Hall = objects "Account", objects "Hall"

local pause = 20 * 1000     -- from the fall of the hammer to the next round, in milliseconds
local grace = 10 * 1000     -- what a bid in the last seconds leaves for an answer
local kept = 50             -- notifications that an account keeps
local guests = { "Iris", "Otto", "Mabel", "Anton", "Wanda", "Felix", "Nora" }

-- A refusal is for the person who asked: without this file's name and line in front.
local function refuse(...) error(string.format(...), 0) end

local Auction = object "Auction" {
    migrations = "migrations/Auction",
    publishes = {
        "bid",                  -- the follow hook decides
        opened = "public",      -- any identity
        closed = "public",
    },

    hooks = {
        init = function(state)
            if not catalogue.by_id[state.name] then refuse("there is no lot %q", state.name) end
            state:_open(1)
        end,

        -- Bids are followed by bidders, from their sockets or while they are away, and by the hall.
        follow = function(state, topic, follower)
            return follower:is(Account) or follower:is(Hall)
        end,

        -- The one alarm of a lot ends its round, then its pause.
        alarm = function(state)
            local now = state:_facts()
            if now.closed then return state:_open(now.round + 1) end
            state.sql:exec("UPDATE rounds SET closed = ?, reopens = ? WHERE round = ?",
                { state.now(), state.now() + pause, now.round })
            state:set_alarm(pause .. "ms")
            state:publish("closed", state:_changed())
        end,
    },

    bid = function(state, bidder, amount)
        local was = state:_facts()
        if was.closed or state.now() >= was.ends then
            refuse("the hammer has fallen; a new round opens shortly")
        end
        if type(amount) ~= "number" or amount ~= math.floor(amount) or amount < 1 or amount > 1000000 then
            refuse("a bid is a whole number of pounds, at most £1,000,000")
        end
        if was.leader == bidder then refuse("the highest bid is yours already") end
        if amount < was.next then refuse("too low: the next bid is £%d or more", was.next) end

        state.sql:exec("INSERT INTO bids (round, at, bidder, amount) VALUES (?, ?, ?, ?)",
            { was.round, state.now(), bidder, amount })
        if was.ends - state.now() < grace then
            state.sql:exec("UPDATE rounds SET ends = ? WHERE round = ?", { state.now() + grace, was.round })
            state:set_alarm(grace .. "ms")      -- takes the place of the earlier one
        end

        local facts = state:_changed()
        facts.outbid = was.leader               -- what an account filters its edge by
        state:publish("bid", facts)
        return facts
    end,

    -- Somebody in the room raises a hand, so that one person alone can try the demo.
    guest_bid = function(state)
        local was = state:_facts()
        local name = "Guest " .. guests[was.bids % #guests + 1]
        return state:bid(name, was.next)
    end,

    -- Ends the pause early.
    reopen = function(state)
        local now = state:_facts()
        if not now.closed then refuse("the lot is open") end
        state:_open(now.round + 1)
    end,

    -- All that a page shows of a lot: a tab that missed events, or starts, begins here.
    look = function(state)
        local facts = state:_facts()
        return {
            facts = facts,
            history = state.sql:query(
                "SELECT at, bidder, amount FROM bids WHERE round = ? ORDER BY amount DESC LIMIT 50", { facts.round }),
            earlier = state.sql:query([[
                SELECT r.round, r.closed, b.bidder AS winner, b.amount AS price
                FROM rounds r JOIN bids b ON b.id = (SELECT id FROM bids WHERE round = r.round ORDER BY amount DESC LIMIT 1)
                WHERE r.round < ? ORDER BY r.round DESC LIMIT 5]], { facts.round }),
            now = state.now(),
        }
    end,

    _open = function(state, round)
        local length = catalogue.by_id[state.name].seconds * 1000
        state.sql:exec("DELETE FROM rounds WHERE round < ?", { round - 20 })
        state.sql:exec("INSERT INTO rounds (round, opened, ends) VALUES (?, ?, ?)",
            { round, state.now(), state.now() + length })
        state:set_alarm(length .. "ms")
        state:publish("opened", state:_changed())
    end,

    -- Counts a change. Whoever holds two versions of a lot's facts keeps the one with the higher step.
    _changed = function(state)
        state.store:set("step", (state.store:get("step") or 0) + 1)
        return state:_facts()
    end,

    _facts = function(state)
        local lot = catalogue.by_id[state.name]
        local facts = state.sql:query_one([[
            SELECT r.*, b.bidder AS leader, b.amount AS price, coalesce(r.closed, b.at, r.opened) AS at,
                (SELECT count(*) FROM bids WHERE round = r.round) AS bids
            FROM rounds r LEFT JOIN bids b ON b.round = r.round
            ORDER BY r.round DESC, b.amount DESC LIMIT 1]])
        facts.lot = state.name
        facts.step = state.store:get("step")
        facts.next = facts.price and facts.price + lot.step or lot.opening
        return facts
    end,
}

-- A bidder. It goes on receiving while no tab is open, and tells whichever tabs are.
object "Account" {
    migrations = "migrations/Account",
    publishes = { events = "self" },    -- only this bidder's own devices

    receives = {
        -- This edge has a filter: only the bids that outbid this account arrive.
        ["Auction:bid"] = function(state, event)
            state:_note("outbid", event)
        end,

        ["Auction:closed"] = function(state, event)
            local facts = event.data
            if not facts.leader then return end     -- nobody bid
            local mine = state.sql:query_one("SELECT round FROM watching WHERE lot = ?", { facts.lot })
            if facts.leader == state.name then
                state:_note("won", event)
            else
                state:_note(mine and mine.round == facts.round and "lost" or "sold", event)
            end
        end,
    },

    watch = function(state, lot)
        if state.sql:query_one("SELECT 1 FROM watching WHERE lot = ?", { lot }) then return end
        state:follow(Auction(lot), "closed")
        state:follow(Auction(lot), "bid", { outbid = state.name })
        state.sql:exec("INSERT INTO watching (lot) VALUES (?)", { lot })
        state:_tell({ kind = "watching", watching = state:_watching() })
    end,

    unwatch = function(state, lot)
        state:unfollow(Auction(lot), "closed")
        state:unfollow(Auction(lot), "bid")
        state.sql:exec("DELETE FROM watching WHERE lot = ?", { lot })
        state:_tell({ kind = "watching", watching = state:_watching() })
    end,

    -- Follows first: an answer to this bid that came in between would be missed. A follow stands even if the call that
    -- made it fails, so a refused bid is an answer here (nil and the reason), and its lot stays watched.
    bid = function(state, lot, amount)
        state:watch(lot)
        local ok, facts = pcall(function() return Auction(lot):bid(state.name, amount) end)
        if not ok then return nil, tostring(facts) end
        state.sql:exec("UPDATE watching SET round = ? WHERE lot = ?", { facts.round, lot })
        return facts
    end,

    inbox = function(state)
        return {
            name = state.name,
            unread = state:_unread(),
            notes = state.sql:query("SELECT * FROM notes ORDER BY id DESC"),
            watching = state:_watching(),
        }
    end,

    -- Marks the notes as read: all, or those of one lot.
    read = function(state, lot)
        state.sql:exec("UPDATE notes SET unread = 0 WHERE unread = 1 AND lot = coalesce(?, lot)", { lot })
        state:_tell({ kind = "read", lot = lot })
    end,

    _note = function(state, kind, event)
        local facts = event.data
        local note = state.sql:query_one([[
            INSERT INTO notes (at, kind, lot, who, amount, away) VALUES (?, ?, ?, ?, ?, ?) RETURNING *]],
            { event.at, kind, facts.lot, facts.leader, facts.price, #state:followers("events") == 0 })
        state.sql:exec("DELETE FROM notes WHERE id <= ?", { note.id - kept })
        state:_tell({ kind = "note", note = note })
    end,

    _tell = function(state, what)
        what.unread = state:_unread()
        state:publish("events", what)
    end,

    _unread = function(state)
        return state.sql:query_one("SELECT count(*) AS n FROM notes WHERE unread = 1").n
    end,

    _watching = function(state)
        local lots = json.array()
        for i, row in ipairs(state.sql:query("SELECT lot FROM watching ORDER BY lot")) do lots[i] = row.lot end
        return lots
    end,
}

-- Keeps what it hears if it is news, and passes it on. A redelivered event and one that overtook a look are both old.
local function pin(state, facts)
    return state.sql:exec([[
        INSERT INTO board (lot, step, facts) VALUES (?, ?, ?)
        ON CONFLICT (lot) DO UPDATE SET step = excluded.step, facts = excluded.facts WHERE excluded.step > board.step]],
        { facts.lot, facts.step, json.stringify(facts) }) > 0
end

local function announce(state, event)
    if pin(state, event.data) then state:publish("board", event.data) end
end

-- The board in the entrance: one object that follows all lots, so that a visitor's socket follows one object.
object "Hall" {
    migrations = "migrations/Hall",
    publishes = { board = "public" },
    receives = {
        ["Auction:opened"] = announce,
        ["Auction:bid"] = announce,
        ["Auction:closed"] = announce,
    },

    board = function(state)
        local board = state:_board()
        for _, lot in ipairs(catalogue.lots) do
            if not board[lot.id] then
                local auction = Auction(lot.id)
                for _, topic in ipairs({ "opened", "bid", "closed" }) do state:follow(auction, topic) end
                pin(state, auction:look().facts)        -- an edge brings nothing older than itself
                board = state:_board()
            end
        end
        local lots = {}
        for i, lot in ipairs(catalogue.lots) do lots[i] = { about = lot, facts = board[lot.id] } end
        return { lots = lots, now = state.now() }
    end,

    _board = function(state)
        local board = {}
        for _, row in ipairs(state.sql:query("SELECT lot, facts FROM board")) do
            board[row.lot] = json.parse(row.facts)
        end
        return board
    end,
}

-- Signs and reads the tokens of this demo with a key that it makes itself, so that nothing must be configured. A real
-- app has its key from outside, `local key = secret "session-key"`, signs and verifies in the fetch handler without
-- asking an object, and gives a token only to somebody who has proved who they are.
local Vault = object "Vault" {
    hooks = {
        init = function(state) state.store:set("key", crypto.random(32)) end,
    },

    issue = function(state, name)
        return jwt.sign({ sub = name }, state.store:get("key"), { alg = "HS256", expires = "12h" })
    end,

    bearer = function(state, token)
        local claims = jwt.verify(token, state.store:get("key"), { alg = "HS256" })
        return claims and claims.sub
    end,
}

-- An identity for those who only look. It is no Account: the lots show it no bids, the board is public.
local Visitor = object "Visitor" {}

local hall, vault = Hall("main"), Vault("main")

local function auction(lot)
    if type(lot) ~= "string" or not catalogue.by_id[lot] then refuse("there is no such lot") end
    return Auction(lot)
end

-- A visitor's socket: the platform's envelope, no code runs.
local Window = connection "Window" {
    open = function(conn) conn:follow(hall, "board") end,
    event = "forward",
}

local function leave(conn)
    if not conn.state.lot then return end
    for _, topic in ipairs({ "bid", "opened", "closed" }) do conn:unfollow(Auction(conn.state.lot), topic) end
    conn.state.lot = nil
end

-- What a bidder's tab may ask for. Who asks is conn.name, fixed when the socket was opened; a frame cannot change it.
local requests = {
    enter = function(conn, frame)
        local lot = auction(frame.lot)
        if conn.state.lot ~= frame.lot then
            leave(conn)
            for _, topic in ipairs({ "bid", "opened", "closed" }) do conn:follow(lot, topic) end
            conn.state.lot = frame.lot
        end
        return lot:look()
    end,
    leave = leave,
    bid = function(conn, frame)
        auction(frame.lot)
        return Account(conn.name):bid(frame.lot, frame.amount)
    end,
    watch = function(conn, frame)
        auction(frame.lot)
        Account(conn.name):watch(frame.lot)
    end,
    unwatch = function(conn, frame)
        auction(frame.lot)
        Account(conn.name):unwatch(frame.lot)
    end,
    read = function(conn, frame)
        if frame.lot then auction(frame.lot) end
        Account(conn.name):read(frame.lot)
    end,
    guest = function(conn, frame) return auction(frame.lot):guest_bid() end,
    reopen = function(conn, frame) auction(frame.lot):reopen() end,
}

-- A bidder's socket: their own stream, the board, and the lot in front of them.
local Seat = connection "Seat" {
    open = function(conn)
        local account = Account(conn.name)
        conn:follow(account, "events")
        conn:follow(hall, "board")
        conn:send({ type = "welcome", inbox = account:inbox(), board = hall:board() })
    end,

    event = function(conn, event)
        if event.topic == "events" then
            conn:send({ type = "personal", data = event.data })
        else
            conn:send({ type = "lot", topic = event.topic, data = event.data })
        end
    end,

    frame = function(conn, frame)
        if type(frame) ~= "table" or not requests[frame.op] then return conn:close(4500, "no such request") end
        local ok, data, reason = pcall(function() return requests[frame.op](conn, frame) end)
        if not ok then reason = tostring(data) end
        if reason then return conn:send({ type = "answer", re = frame.id, ok = false, error = reason }) end
        conn:send({ type = "answer", re = frame.id, ok = true, data = data })
    end,
}

local function enter(request)
    local ok, form = pcall(json.parse, request.body)
    local name = ok and type(form) == "table" and type(form.name) == "string" and form.name:match("^%s*(.-)%s*$") or ""
    if name == "" or #name > 40 or name:find("%c") or name:find("\194[\128-\159]") or name:lower():find("^guest") then
        return { status = 422, body = { error = "a name has 1 to 40 characters, and does not begin with Guest" } }
    end
    return { body = { name = name, token = vault:issue(name) } }
end

on "fetch" (function(request)
    local path, token = request.path, request.query.token

    if path == "/live" and request.upgrade then
        if not token then return request:upgrade(Window, nil, Visitor("anyone")) end
        local name = vault:bearer(token)
        if not name then return { status = 401, body = "enter again: this token has expired, or is of another house" } end
        return request:upgrade(Seat, nil, Account(name))
    elseif path == "/api/enter" and request.method == "POST" then
        return enter(request)
    elseif path == "/api/me" then
        local name = vault:bearer((request.headers.authorization or ""):match("^Bearer (.+)$") or "")
        return name and { body = { name = name } } or { status = 401, body = { error = "enter first" } }
    elseif path == "/api/board" then
        return { body = hall:board() }
    elseif path:match("^/api/lots/[%w-]+$") then
        local id = path:match("[%w-]+$")
        return catalogue.by_id[id] and { body = Auction(id):look() } or { status = 404, body = { error = "there is no such lot" } }
    end
end)
