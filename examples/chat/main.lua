-- Rooms to talk in. A room shows its messages only to its members; README.md says what to look at first.

local Person, Lobby = objects "Person", objects "Lobby"

local kept = 1000       -- messages that a room keeps
local page = 100        -- messages in one answer
local longest = 2000    -- bytes of a message

-- A refusal is for the person who asked: without this file's name and line in front.
local function refuse(...) error(string.format(...), 0) end

local Room = object "Room" {
    migrations = "migrations/Room",
    publishes = { "message", "roster" },    -- bare names: the follow hook decides

    hooks = {
        follow = function(state, topic, follower)
            if topic == "roster" then return follower:is(Lobby) end
            return follower:is(Person) and state:_is_member(follower.name)
        end,
    },

    found = function(state, owner)
        if state.store:get("owner") then refuse("there is a room of this name already") end
        state.store:set("owner", owner)
        state:join(owner)
    end,

    join = function(state, who)
        if not state.store:get("owner") then refuse("there is no such room") end
        local was = state.sql:query_one("SELECT removed FROM members WHERE name = ?", { who })
        if was and was.removed == 1 then refuse("the owner has removed you from this room") end
        if was then return end
        state.sql:exec("INSERT INTO members (name) VALUES (?)", { who })
        state:_roster()
    end,

    -- The edges of all of this person's sockets go with the commit of this call: what is published later does not reach
    -- them. Who is marked here cannot join again either.
    remove = function(state, owner, who)
        if state.store:get("owner") ~= owner then refuse("only the owner of a room can remove somebody") end
        if who == owner then refuse("the owner of a room stays") end
        if state.sql:exec("UPDATE members SET removed = 1 WHERE name = ? AND removed = 0", { who }) == 0 then
            refuse("there is no such member")
        end
        state:drop_followers(Person(who))
        state:_roster(who)
    end,

    -- The message and the event that tells of it are one transaction.
    say = function(state, who, text)
        if not state:_is_member(who) then refuse("join this room first") end
        if type(text) ~= "string" or not text:find("%S") then refuse("a message needs a text") end
        if #text > longest then refuse("a message has at most %d bytes", longest) end
        local message = state.sql:query_one(
            "INSERT INTO messages (at, who, text) VALUES (?, ?, ?) RETURNING *", { state.now(), who, text })
        state.sql:exec("DELETE FROM messages WHERE n <= ?", { message.n - kept })
        state:publish("message", message)
        return message.n
    end,

    -- The messages after number n, the oldest first; without n the latest. A socket gets an event at most once, so a
    -- page that comes back, or that sees a number left out, asks here until nothing more comes.
    since = function(state, who, n)
        if not state:_is_member(who) then refuse("join this room first") end
        n = n or state.sql:query_one("SELECT coalesce(max(n), 0) AS n FROM messages").n - page
        return state.sql:query("SELECT * FROM messages WHERE n > ? ORDER BY n LIMIT ?", { n, page })
    end,

    -- Who is here: one name for all the sockets of a person.
    here = function(state, who)
        if not state:_is_member(who) then refuse("join this room first") end
        local names, seen = json.array(), {}
        for _, follower in ipairs(state:followers("message")) do
            if not seen[follower.name] then
                seen[follower.name] = true
                names[#names + 1] = follower.name
            end
        end
        table.sort(names)
        return { names = names, owner = state.store:get("owner") }
    end,

    _is_member = function(state, who)
        return state.sql:query_one("SELECT 1 FROM members WHERE name = ? AND removed = 0", { who }) ~= nil
    end,

    _roster = function(state, removed)
        state:publish("roster", {
            room = state.name,
            owner = state.store:get("owner"),
            members = state.sql:query_one("SELECT count(*) AS n FROM members WHERE removed = 0").n,
            removed = removed,
        })
    end,
}

-- The list of the rooms. It follows each of them, so that a socket follows one object.
object "Lobby" {
    migrations = "migrations/Lobby",
    publishes = { rooms = "public" },

    receives = {
        ["Room:roster"] = function(state, event)
            local room = event.data
            state.sql:exec([[
                INSERT INTO rooms (room, owner, members) VALUES (?, ?, ?)
                ON CONFLICT (room) DO UPDATE SET members = excluded.members]], { room.room, room.owner, room.members })
            state:publish("rooms", room)
        end,
    },

    -- Follows first: an edge brings nothing older than itself.
    open = function(state, room, owner)
        if state.sql:query_one("SELECT count(*) AS n FROM rooms").n >= 100 then refuse("there are a hundred rooms already") end
        state:follow(Room(room), "roster")
        Room(room):found(owner)
    end,

    rooms = function(state) return state.sql:query("SELECT * FROM rooms ORDER BY room") end,
}

-- Whom a socket belongs to.
object "Person" {}

-- Signs and reads the tokens of this demo with a key that it makes itself, so that nothing must be configured. A real
-- app has its key from outside, `local key = secret "session-key"`, and gives a token only to somebody who has proved
-- who they are.
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

local lobby, vault = Lobby("main"), Vault("main")

local function room(name)
    if type(name) ~= "string" or #name > 24 or not name:find("^[a-z0-9][a-z0-9-]*$") then
        refuse("a room's name has 1 to 24 small letters, digits and hyphens")
    end
    return Room(name)
end

-- What a page may ask for. Who asks is conn.name, fixed when the socket was opened; a frame cannot change it.
local requests = {
    open = function(conn, frame)
        room(frame.room)
        lobby:open(frame.room, conn.name)
    end,
    join = function(conn, frame) room(frame.room):join(conn.name) end,

    -- Follows first, then reads: a message that comes in between comes twice, and its number tells.
    enter = function(conn, frame)
        local next_room = room(frame.room)
        if conn.state.room and conn.state.room ~= frame.room then
            conn:unfollow(Room(conn.state.room), "message")
            conn.state.room = nil
        end
        conn:follow(next_room, "message")       -- refused unless the follow hook says yes
        conn.state.room = frame.room
        return { messages = next_room:since(conn.name, frame.n), here = next_room:here(conn.name) }
    end,
    since = function(conn, frame) return room(frame.room):since(conn.name, frame.n) end,
    say = function(conn, frame) return room(frame.room):say(conn.name, frame.text) end,
    remove = function(conn, frame) room(frame.room):remove(conn.name, frame.who) end,
}

local Seat = connection "Seat" {
    open = function(conn)
        conn:follow(lobby, "rooms")
        conn:send({ type = "welcome", rooms = lobby:rooms() })
    end,

    event = function(conn, event)
        if event.topic == "message" then
            return conn:send({ type = "message", room = event.from.name, message = event.data })
        end
        conn:send({ type = "room", room = event.data })
        if event.data.removed == conn.name and event.data.room == conn.state.room then conn.state.room = nil end
    end,

    -- Sockets come and go without a word: who is here is asked for now and then.
    timer = { every = "5s", run = function(conn)
        if not conn.state.room then return end
        local ok, here = pcall(function() return Room(conn.state.room):here(conn.name) end)
        if ok then conn:send({ type = "here", room = conn.state.room, here = here }) end
    end },

    frame = function(conn, frame)
        if type(frame) ~= "table" or not requests[frame.op] then return conn:close(4500, "no such request") end
        local ok, data = pcall(function() return requests[frame.op](conn, frame) end)
        if not ok then return conn:send({ type = "answer", re = frame.id, ok = false, error = tostring(data) }) end
        conn:send({ type = "answer", re = frame.id, ok = true, data = data })
    end,
}

local function enter(request)
    local ok, form = pcall(json.parse, request.body)
    local name = ok and type(form) == "table" and type(form.name) == "string" and form.name:match("^%s*(.-)%s*$") or ""
    if name == "" or #name > 40 or name:find("%c") or name:find("\194[\128-\159]") then
        return { status = 422, body = { error = "a name has 1 to 40 characters" } }
    end
    return { body = { name = name, token = vault:issue(name) } }
end

on "fetch" (function(request)
    local path = request.path
    if path == "/live" and request.upgrade then
        local name = vault:bearer(request.query.token or "")
        if not name then return { status = 401, body = "enter again: this token has expired" } end
        return request:upgrade(Seat, nil, Person(name))
    elseif path == "/api/enter" and request.method == "POST" then
        return enter(request)
    elseif path == "/api/me" then
        local name = vault:bearer((request.headers.authorization or ""):match("^Bearer (.+)$") or "")
        return name and { body = { name = name } } or { status = 401, body = { error = "enter first" } }
    end
end)
