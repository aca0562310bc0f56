package system

import (
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"weir/services/host/hostd"
	"weir/test/testkit"
)

const firstApp = `
-- main.lua --
local Account = objects "Account"
local Auction = object "Auction" {
    migrations = "migrations/Auction",
    publishes = { "bid", closed = "public" },
    hooks = {
        follow = function(state, topic, follower) return follower:is(Account) end,
        alarm = function(state) state:publish("closed", { by = "alarm" }) end,
    },
    bid = function(state, user, amount)
        state.sql:exec("INSERT INTO bids VALUES (?, ?, ?)", { state.now(), user, amount })
        state:publish("bid", { user = user, amount = amount })
        return { ok = true }
    end,
    close_in = function(state, d) state:set_alarm(d) end,
    bids = function(state) return state.sql:query("SELECT user, amount FROM bids ORDER BY rowid") end,
}
object "Account" {
    receives = {
        ["Auction:bid"] = function(state, event)
            state.count = (state.count or 0) + 1
            state.store:set("seen", state.count)
            state.store:set("last", event.data)
        end,
        ["Auction:closed"] = function(state, event) state.store:set("closed", event.data.by) end,
    },
    watch = function(state, id) state:follow(Auction(id), "bid") state:follow(Auction(id), "closed") end,
    seen = function(state) return { seen = state.store:get("seen"), last = state.store:get("last"), closed = state.store:get("closed") } end,
}
-- migrations/Auction/1.sql --
CREATE TABLE bids (at INTEGER NOT NULL, user TEXT NOT NULL, amount INTEGER NOT NULL);
`

func TestFirst(t *testing.T) {
	testkit.Bubble(t, txtar.Parse([]byte(firstApp)), hostd.Limits{}, func(t *testing.T, s *testkit.System) {
		t.Log(s.MustCall("Account/ada", "watch", `"lot-1"`))
		for range 5 {
			s.MustCall("Auction/lot-1", "bid", `"bob"`, `25`)
		}
		t.Log(s.MustCall("Auction/lot-1", "bids"))
		time.Sleep(time.Second)
		t.Log(s.MustCall("Account/ada", "seen"))
		s.MustCall("Auction/lot-1", "close_in", `"1h"`)
		time.Sleep(time.Hour + time.Second)
		t.Log(s.MustCall("Account/ada", "seen"))
	})
}
