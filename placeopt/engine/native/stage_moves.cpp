// The moves of the search for pipelines.
#include "stages.hpp"

namespace engine {

// Whether a unit may be in a place with the units that are there, as far as classes and separations say.
bool StageSearch::allowed(Int unit, Int place) const {
    const Int d = now.home[place];
    if (!units_.allowed[unit * units_.m + d] || now.leader[d] != d) return false;
    const Ints rivals = units_.apart[unit];
    return std::none_of(rivals.begin(), rivals.end(), [&](Int rival) { return where(rival) == d; });
}

// Whether a unit is not before its predecessors and not after its successors.
bool StageSearch::in_order(Int unit) const {
    const Int place = now.place[unit];
    for (const Int u : units_.before[unit])
        if (now.place[u] > place) return false;
    for (const Int u : units_.after[unit])
        if (now.place[u] < place) return false;
    return true;
}

// A random unit that shares an item with a unit, NONE if there is none.
Int StageSearch::neighbour(Int unit) {
    const Ints items = units_.touched[unit];
    if (items.empty()) return NONE;
    const Int item = items[draw(static_cast<Int>(items.size()))];
    if (units_.producer[item] != unit) return units_.producer[item];
    const Ints consumers = units_.consumer[item];
    return consumers[draw(static_cast<Int>(consumers.size()))];
}

// A random place for a unit, often that of a neighbour.
Int StageSearch::target(Int unit) {
    const Int here = now.place[unit], places = static_cast<Int>(now.home.size());
    if (draw(4) != 0)
        if (const Int u = neighbour(unit); u >= 0 && now.place[u] != here) return now.place[u];
    if (!units_.ordered) return draw(places);
    Int low = 0, high = places - 1;
    for (const Int u : units_.before[unit]) low = std::max(low, now.place[u]);
    for (const Int u : units_.after[unit]) high = std::min(high, now.place[u]);
    return low <= high ? low + draw(high - low + 1) : here;
}

// Moves a unit if it is allowed there; returns whether it is.
bool StageSearch::go(Int unit, Int place) {
    if (!allowed(unit, place)) return false;
    moved_.push_back({unit, now.place[unit]});
    shift(unit, place);
    return true;
}

// Moves a unit and all that the order of places forces to come along; returns whether it worked.
bool StageSearch::gather(Int unit, Int place, Int most) {
    const bool forwards = place > now.place[unit];
    if (!go(unit, place)) return false;
    for (std::size_t at = 0; at < moved_.size(); ++at) {
        const Int w = moved_[at].unit;
        for (const Int u : forwards ? units_.after[w] : units_.before[w]) {
            if (forwards ? now.place[u] >= place : now.place[u] <= place) continue;
            if (static_cast<Int>(moved_.size()) >= most || !go(u, place)) return false;
        }
    }
    return true;
}

// Moves a unit and some connected ones from its place; returns whether any may move.
bool StageSearch::cluster(Int unit, Int place, Int most) {
    const Int old = now.place[unit];
    if (!go(unit, place)) return false;
    Int w = unit;
    for (Int tries = 2 * most; tries > 0 && static_cast<Int>(moved_.size()) < most; --tries) {
        const Int u = neighbour(w);
        if (u >= 0 && now.place[u] == old) {
            if (go(u, place)) w = u;
        } else if (draw(3) == 0) {
            w = moved_[draw(static_cast<Int>(moved_.size()))].unit;
        }
    }
    return true;
}

// Moves random units; returns whether the result satisfies all but memory.
bool StageSearch::propose() {
    moved_.clear();
    const Int unit = draw(units_.k), place = target(unit), here = now.place[unit];
    if (place == here) return false;
    const Int kind = draw(8);
    if (kind == 0) return exchange_units(unit);
    if (units_.ordered) {
        if (kind >= 3) return gather(unit, place, std::min(Int{4}, units_.k));
        // To the next place, with all that must come along.
        const Int step = draw(2) != 0 ? 1 : -1;
        const Int next = std::max(std::min(here + step, static_cast<Int>(now.home.size()) - 1), Int{0});
        return next != here && gather(unit, next, std::min(longest_, units_.k));
    }
    if (kind >= 3) return go(unit, place);
    Int most = 2;  // most clusters are small, as moves of large ones take long
    while (most < longest_ && draw(2) != 0) most *= 2;
    return cluster(unit, place, std::min(most, units_.k));
}

// Lets a unit and another one, often a neighbour of a neighbour, change places.
bool StageSearch::exchange_units(Int unit) {
    Int other = draw(units_.k);
    Int near = neighbour(unit);
    if (near >= 0 && draw(2) != 0) {
        near = neighbour(near);
        if (near >= 0) other = near;
    }
    const Int a = now.place[unit], b = now.place[other];
    if (a == b || !go(unit, b) || !go(other, a)) return false;
    return !units_.ordered || (in_order(other) && in_order(unit));
}

// Moves the units of the last proposal back.
void StageSearch::undo() {
    for (auto move = moved_.rbegin(); move != moved_.rend(); ++move) shift(move->unit, move->origin);
}

// Lets the devices of two places change their units; returns whether these may be there.
bool StageSearch::swap(Int a, Int b) {
    const Int d = now.home[a], other = now.home[b];
    for (Int& home : now.home) home = home == d ? other : home == other ? d : home;
    std::swap(now.again[d], now.again[other]);
    rebuild();
    for (Int unit = 0; unit < units_.k; ++unit)
        if (!units_.allowed[unit * units_.m + where(unit)]) return false;
    return true;
}

// Whether each of two devices may have as many stages as the other has places.
bool StageSearch::exchangeable(Int d, Int other) const {
    const Int ours = std::count(now.home.begin(), now.home.end(), d), theirs = std::count(now.home.begin(), now.home.end(), other);
    return ours <= units_.segments[other] && theirs <= units_.segments[d];
}

// Changes devices, teams or recomputation at random; returns whether anything changed.
bool StageSearch::rearrange() {
    const Int m = units_.m, places = static_cast<Int>(now.home.size());
    changed_ = {};
    const auto has_tasks = [&](Int d) { return load_[d].tasks[0] + load_[d].tasks[1] > 0; };
    switch (draw(3)) {
        case 0: {  // two stages change devices
            const Int a = draw(places), b = draw(places), d = now.home[a], other = now.home[b];
            if (units_.label[d] == units_.label[other] || team_[d] != 1 || team_[other] != 1) return false;
            if (units_.ordered && !exchangeable(d, other)) return false;
            if (!swap(a, b)) {
                swap(a, b);
                return false;
            }
            changed_ = {Change::swap, a, b};
            return true;
        }
        case 1: {
            const Int d = draw(m);
            if (!units_.recompute || load_[d].again == 0) return false;
            now.again[d] = 1 - now.again[d];
            changed_ = {Change::recompute, d, 0};
            return true;
        }
        default: {  // a device joins the team of another, or leaves its team
            const Int a = draw(m), b = draw(m), old = now.leader[a];
            if (units_.replicas == 1 || units_.label[a] != units_.label[b] || now.leader[b] != b || old == b) return false;
            if (old == a && (has_tasks(a) || team_[a] > 1)) return false;
            if (a != b && (team_[b] >= units_.replicas || !has_tasks(b))) return false;
            --team_[old];
            now.leader[a] = b;
            ++team_[b];
            changed_ = {Change::team, a, old};
            return true;
        }
    }
}

// Undoes the last rearrangement.
void StageSearch::restore() {
    const auto [kind, first, second] = changed_;
    if (kind == Change::swap) swap(first, second);
    if (kind == Change::recompute) now.again[first] = 1 - now.again[first];
    if (kind == Change::team) {
        --team_[now.leader[first]];
        now.leader[first] = second;
        ++team_[second];
    }
}

}  // namespace engine
