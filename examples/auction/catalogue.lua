-- The lots. A lot's id is the name of its Auction object and of its picture, web/lots/<id>.svg.
-- opening: the lowest first bid; step: the least a later bid must add (pounds); seconds: the length of a round.
local lots = {
    {
        id = "moon-jar", title = "A white moon jar", origin = "Porcelain, about 1740", opening = 120, step = 10, seconds = 90,
        text = "Thrown in two halves and joined at the belly, so that no two are quite round. This one leans a little to the left, as if listening.",
    },
    {
        id = "heron", title = "Heron at the weir", origin = "Colour woodblock print, 1911", opening = 60, step = 5, seconds = 100,
        text = "An early impression with strong blues. The heron has been waiting for the same fish for more than a century.",
    },
    {
        id = "orrery", title = "A brass orrery", origin = "London, 1790s", opening = 200, step = 20, seconds = 110,
        text = "Six planets, one of them a later replacement. Turned by hand; a year takes about eleven seconds.",
    },
    {
        id = "chair", title = "A bentwood chair", origin = "Vienna, 1881", opening = 40, step = 5, seconds = 80,
        text = "Six pieces of steamed beech, ten screws and two nuts. Newly caned, and ready for another hundred years of coffee houses.",
    },
    {
        id = "camera", title = "A folding camera", origin = "Dresden, 1926", opening = 30, step = 5, seconds = 95,
        text = "The bellows are light-tight and the shutter is true at every speed but the slowest, which takes its time.",
    },
    {
        id = "clock", title = "A mantel clock", origin = "Edinburgh, about 1850", opening = 90, step = 10, seconds = 85,
        text = "Walnut, with an enamel dial. Strikes the hours and, if asked politely, stays silent after ten at night.",
    },
}

local by_id = {}
for number, lot in ipairs(lots) do
    lot.number = number
    by_id[lot.id] = lot
end

return { lots = lots, by_id = by_id }
