# The texts of the booking-service's pages.
booking-service = Rooms
start = Start
board = Board
events = Events
about = Rooms that the club holds, and what happens in them.
hello = Hello, { $name }
this-week = My week
no-events = No events.
free-today = Free rooms today
nothing-free = No confirmed room is free for the rest of today.
book-a-room = Book a room
book = Book
and-more = and { $n } more
next-rows = Next ones
at-most = This page shows at most { $n }.
today = Today
events-of = Events in { $month }
month-mine = Events of this colour are those to which you go.
search = Search
search-hint = Name, description, place, group or tag.
searched-months = Searched from { $from } to { $to }.
search-earlier = Search earlier months
search-later = Search later months
filters = Group and tag
all-groups = All groups
tag = Tag

my-answer = Are you coming?
not-answered-yet = not answered
answer-attendance = Going
answer-pending = Maybe
answer-absent = Not going
who-comes = Attendees
not-confirmed = not confirmed
not-free = taken
group = Group
group-hint = Its members are invited.
please-choose = Please choose
rule-not-a-uuid-groupId = Please choose a group. Its members are invited.
open = Open to everybody
open-hint = Anybody may come, not only members of the group.
shared = Shared
shared-hint = Others may use the room at the same time.
admins = Editors
created-by = Created by
tags = Tags
tags-hint = Separated by spaces.
names-hint = Names or sign-in names, separated by commas.
new-tag = New tag
add = Add
calendar = Calendar
calendar-file = Calendar file (.ics)
google-calendar = Add to Google Calendar
duplicate = Duplicate
edit = Edit
delete = Delete
save = Save
edit-event = Edit the event
delete-event = Delete this event?
delete-event-about = Its page goes, and calendars show it as cancelled.
when = When
where = Where
what = What
date = Day
from = From
until = Until
until-hint = Up to 6:00 it may be on the next day.
end-date = Last day, if another
show-free-rooms = Show the rooms that are free then
room = Room
another-place = Another place
other-place = Name of the place
other-place-hint = Needed if no room is chosen.
no-room-free = No room is free then.
free-at-other-times = Free at other times of this day. Press one to put it into the form:
rooms-free = { $n ->
    [one] 1 room is free
   *[other] { $n } rooms are free
}
place-not-held = The club does not hold { $place } then.
name = Name
description = Description
taken-by = Already there at that time:
free-instead = The room is free at these times. Press one to take it instead:
present-version = As it is now
discard-mine = Leave it as it is now, and begin again

not-signed-in = You are not signed in
signed-in-as = You are signed in as { $name }
sign-in-as-other = Sign in as somebody else
documentation = Documentation

problem-outside-room-window = The club does not hold the room then
problem-outside-room-window-about = The room is not held for the whole time. Choose another room or another time.
problem-room-conflict = The room is taken
problem-room-conflict-about = Somebody else has the room at that time. Choose another room or another time.
problem-series-conflict = Some dates cannot be booked
problem-series-conflict-about = Nothing was booked. Leave these dates out, or choose another place or time for them.
problem-room-overlap = Another confirmed room overlaps this one
problem-room-overlap-about = The same place is held twice at that time. Delete one of the two rooms first.
problem-events-to-come = There are events that have not ended
problem-events-to-come-about = They would be deleted as well.
problem-room-deleted = The room of the event is deleted
problem-room-deleted-about = Choose another room or place for it.
problem-group-deleted = The group of the event is deleted
problem-group-deleted-about = Choose another group for it.
problem-already-answered = You have answered already
problem-already-answered-about = Your answer is there. You can change it.
problem-poll-closed = The poll is closed
problem-poll-closed-about = Its deadline has passed, or it has become an event. Nothing was saved.
problem-poll-confirmed = The poll has become an event already
problem-poll-confirmed-about = Somebody has chosen a time meanwhile.
problem-too-many-tokens = You have too many tokens
problem-too-many-tokens-about = You may have 50. Revoke one that is not needed.
problem-too-many-tags = There are too many tags
problem-too-many-tags-about = An event may have 100. Remove one that is not needed.
problem-too-many-webhooks = There are too many webhooks
problem-too-many-webhooks-about = The club may have 100. Delete one that is not needed.
problem-last-privileged-user = One user must stay privileged
problem-last-privileged-user-about = Grant the privilege to another user first.
problem-webhook-off = The webhook is off
problem-webhook-off-about = Switch it on first.
problem-no-secret = The webhook has no secret
problem-no-secret-about = Slack and Discord take messages without one.
problem-bad-import = The table cannot be imported
problem-bad-import-about = Nothing was imported. Correct these rows, and upload it again.

polls = Polls
polls-waiting = Polls that wait for me
polls-mine = My polls
polls-answered = Answered
polls-past = Past
no-polls = No polls.
poll-open = Open
poll-closed = Closed
poll-confirmed = Confirmed
deadline-at = Answers until { $at }
answers-of = { $all ->
    [0] { $n } answered
   *[other] { $n } of { $all } have answered
}
new-poll = New poll
poll-event = To the event
my-times = When can I come?
slot-yes = Yes
slot-maybe = Maybe
slot-no = No
comment = Comment
answer = Answer
change-answer = Change my answer
results = Results
time = Time
total = Yes
best = Best
confirm-a-time = Choose a time
confirm-poll = { $name }: choose a time
confirm = Choose this time
delete-poll = Delete this poll?
delete-poll-about = The event of a poll stays. For 30 days it can be restored.
days-and-times = Days and times
edit-poll = Edit the poll
more-times = Add times
poll-reopens = The deadline has passed. Saving opens the poll again until this one:
first-day = First day
number-of-days = Number of days
times = Times of each day
times-hint = For example 13:00-15:00 18:00-20:00
show-grid = Show the grid
who-is-asked = Who is asked
rule-required-invitees = Nobody could answer this poll. Choose a group, name members, or let everybody answer.
no-group = No group
more-members = More members
poll-open-to-all = Everybody may answer
until-when = Answers until
ask = Create poll

groups = Groups
my-groups = My groups
other-groups = Other groups
new-group = New group
edit-group = Edit the group
join = Join
leave = Leave
all-events = All events
members = { $n ->
    [one] 1 member
   *[other] { $n } members
}
members-names = Members
nobody-found = Nobody is called so.
group-open = Anybody may join and leave
directory-group = This group comes from the club's directory and is changed there.
delete-group = Delete this group?
delete-group-about = Its past events still show it.
delete-group-has-events = The group has events that have not ended.
delete-events-too = Delete these events as well

rooms = Rooms
no-rooms = No rooms.
earlier = Earlier
later = Later
verify = Confirm
withdraw = Withdraw the confirmation
delete-room-has-events = Events in this room have not ended.
delete-room = Delete this room?
import-rooms = Upload rooms
import-about = A table (CSV) with these columns, in any order. You see what it would make before anything is saved.
table = Table
preview = Preview
row = Row { $n }
rooms-found = { $n ->
    [one] The table has 1 room.
   *[other] The table has { $n } rooms.
}
import-now = Import now
privileges = Privileges
privileges-about = These members may change everything, confirm rooms and give this privilege.
privileged = privileged
grant = Give the privilege
revoke = Revoke

me = My settings
calendar-feed = Calendar feed
feed-about = Your events in the calendar of your telephone or computer. Whoever has the address can read them.
feed-address = Address to copy
subscribe = Subscribe
make-feed = Make an address
renew-feed = Make another address
renew-feed-about = The present address ends at once. Every calendar that uses it needs the new one.
tokens = API tokens
tokens-about = For programs that act for you.
new-token = New token
make-token = Make a token
token-once = Copy it now: it is not shown again.
scope = It may
scope-read = read
scope-write = read and write
scope-board = show the board
expires = Valid until (empty: no end)
made-at = Made on { $at }
used-at = Last used { $at }
valid-until = Valid until { $at }
done = Done
sessions = Signed in
signed-in-at = Since { $at }
this-session = Here
end-session = Sign out there

free-times = Free
fully-taken = It is not free any more.
history-of = History of { $name }
all-changes = All changes
no-history = No changes.
back-to-this = Back to this
restore = Restore
another-group = Another group
deleted = Recently deleted
deleted-about = What was deleted in the last 30 days and you may restore.
deleted-nothing = Nothing.
deleted-at = Deleted on { $at }.
restorable-until = It can be restored until { $at }.
history-verified = confirmed it
history-unverified = withdrew the confirmation
history-confirmed = made an event of it
history-event-name = renamed it from “{ $old }” to “{ $new }”
history-group-name = renamed it from “{ $old }” to “{ $new }”
history-poll-name = renamed it from “{ $old }” to “{ $new }”
history-event-place = moved it from { $old } to { $new }
history-event-roomId = moved it from the room { $old } to { $new }
history-event-groupId = made it an event of { $new } instead of { $old }
history-event-open-true = opened it to everybody
history-event-open-false = closed it for people outside the group
history-event-sharedRoom-true = shared the room
history-event-sharedRoom-false = took the room alone
history-group-open-true = let anybody join
history-group-open-false = let nobody join any more
history-poll-open-true = let everybody answer
history-poll-open-false = let only those answer who are asked
field-place = the place
field-roomId = the room
field-groupId = the group
field-eventId = the event
field-timeStart = the start
field-timeEnd = the end
field-sharedRoom = the sharing of the room
field-open = who may come
field-group-open = who may join
field-poll-open = who may answer
field-verified = the confirmation
field-admins = those who may change it
field-members = the members
field-invitees = those who are asked
field-tags = the tags
field-deadline = the deadline
field-candidateSlots = the times
tag-locked = { $name } (locked)

message-created = A new event
message-changed = An event has changed
message-restored = An event takes place after all
message-cancelled = An event is cancelled
message-series-created = A new series of events
message-series-changed = A series of events has changed
message-series-cancelled = A series of events is cancelled
message-dates = { $n ->
    [one] 1 date: { $first }
   *[other] { $n } dates, first { $first }
}
message-weekdays = Monday Tuesday Wednesday Thursday Friday Saturday Sunday
message-daily = { $n ->
    [one] every day
   *[other] every { $n } days
}
message-weekly = { $n ->
    [one] every { $days }
   *[other] every { $n } weeks on { $days }
}
message-monthly = { $n ->
    [one] every month
   *[other] every { $n } months
}
message-reminder = An event begins soon, and some have not answered
message-poll-reminder = A poll ends soon, and some have not answered
message-group = Group: { $group }
message-time = Time: { $time }
message-place = Place: { $place }
message-deadline = Deadline: { $time }
message-please-answer = Please say whether you come:
message-please-answer-poll = Please say when you can come:
message-more = The rest is here
message-test = This is a test. Messages arrive here.
digest-rooms = Rooms on { $day }
digest-no-rooms = No room is confirmed for today.
digest-events = Events on { $day }
digest-no-events = There are no events today.
digest-shared = (shared)
digest-time = Time
digest-before = before
digest-after = after

webhooks = Webhooks
webhook-off = Off.
webhook-gone = Off: the receiver says that its address is no longer used.
webhook-failing = Off: nothing has arrived for two weeks.
webhook-failing-since = Nothing has arrived since { $at }.
webhook-test = Send a test
webhook-retry = Send again
webhook-switch-on = Switch on
delivery-waiting = waits until
delivery-delivered = has arrived
delivery-merged = was sent together with an earlier one
delivery-dropped = was not sent
delivery-failed = has not arrived

board-timetable = Timetable
board-timetable-of = Timetable of { $day }
board-week-of = { $from } to { $to }
board-only = Only { $place }.
board-other-days = Other days
board-previous = ← Previous
board-next = Next →
board-day = Day
board-week = Week
board-place = Place
board-all-places = All places
board-as-table = As a table
board-show = Show
board-nothing = No room and no event.
board-some-rooms = { $n } of { $all } rooms
board-some-events = { $n } of { $all } events
board-and = {" "}and{" "}
board-left-out = Only { $what } fit here, those that begin first. To see the others, choose a place.
board-one-day = Show one day
board-free = free
board-free-for-shared = free for shared events
board-free-from = free from { $at }
board-free-until = free until { $at }
board-shared-from = for shared events from { $at }
board-shared-until = for shared events until { $at }
board-over = no longer held
board-full = fully booked
board-event = event
board-is-shared = shared: others may use the room too
board-not-held = at a place that is not held
board-held = held by the club
board-not-confirmed = not confirmed
board-now = now
board-event-column = Event
board-shared = shared
board-place-not-held = place not held
board-shared-not-held = shared, place not held
board-free-times = Free times
board-only-shared = (shared events only)
board-screen = { $n } of { $all }
board-unavailable = The board cannot be shown at present
board-disconnected = This screen is not connected any more
board-disconnected-about = Whoever looks after the screen can connect it again.

date-of-series = Date { $number } of { $total } of a series
answer-later = This and all later dates:
repeat = Repeats
repeat-how = How often
repeat-once = Once
repeat-daily = By days
repeat-weekly = By weeks
repeat-monthly = By months, on the same day
repeat-monthly-weekday = By months, on the same day of the week
repeat-every = Every … days, weeks or months
repeat-times = Number of dates
repeat-repeatUntil = Or until
repeat-days = By weeks, on these days as well
weekdays = Mon Tue Wed Thu Fri Sat Sun
show-dates = Show the dates
series-dates = { $n ->
    [one] 1 date
   *[other] { $n } dates
}
series-dates-hint = Dates without a tick are left out.
rule-length-exdates = Tick at least one date.
series-not-held-hint = A date on which the club does not hold the room is booked if you tick it, but not confirmed.
series-room-on = Room on { $day }
series-room-free = { $place }, free
series-check-dates = Nothing is booked yet. Check the { $n ->
    [one] 1 date
   *[other] { $n } dates
} below{ $refused ->
    [0] .
   *[other] { $why ->
        [taken] ; { $refused } of them { $refused ->
            [one] is
           *[other] are
        } taken.
        [not-held] ; on { $refused } of them the club does not hold the room.
        [several] ; { $refused } of them need a choice.
       *[other] ; { $refused } of them cannot be booked.
    }
}
series-room-conflict = The room is taken.
series-outside-room-window = The club does not hold the room then.
series-nonexistent-time = The clocks skip this time.
scope-of-change = Change
scope-one = Only this date
scope-later = This and all later dates
scope-later-dates = This and all later dates ({ $n })
scope-to-come = Dates to come ({ $n })
scope-all = All dates ({ $n })
scope-of-deletion = Delete
scope-hint = Dates that were changed alone stay as they are.
series-about = { $n ->
    [one] 1 date
   *[other] { $n } dates
}, { $coming } to come
answer-series = Are you coming to all dates to come?
dates-to-come = Dates to come
past-dates = { $n ->
    [one] 1 past date
   *[other] { $n } past dates
}
no-dates = No dates.
date-answers = { $yes } going, { $no } not going, { $pending } not answered
changed-alone = changed alone
edit-later-dates = Edit later dates
add-date = Add a date
add-date-about = It is like the last date of the series, at the same place.
rule-range-timeStart = Another date of the series is at that time.
rule-length-timeStart = The series has as many dates as it may have.
last-day = Last day
last-day-hint = Later dates are deleted. Missing ones are booked.
rule-in-the-past-lastDay = Choose today or a later day.
delete-dates = Delete dates
delete-series = Delete dates of this series?
delete-series-about = Their pages go, and calendars show them as cancelled.

invitations = Invitations
invitations-about = Whoever opens the link of an invitation and signs in becomes a member.
invitation-used = { $used } of { $uses } have joined
new-invitation = New invitation
invitation-uses = For how many people
invitation-days = For how many days
invitation-privileged = Whoever joins is privileged
make-invitation = Make a link
invitation-once = This link is shown only now. Send it to the people who are to join.
link = Link
you-are-invited = You are invited
join-about = Sign in with your account, and you are a member.
join-now = Join
invitation-ended = This invitation has ended
invitation-ended-about = It was used, is too old or was deleted. Ask whoever sent it for another one.
problem-too-many-invitations = There are too many invitations
problem-too-many-invitations-about = Delete one that is not needed.
to-answer = { $n } to answer
whole-board = The whole board
calendar-about = See these events in the calendar of your telephone.
month = Month
series = Series
about-event = About
nobody-yet = Nobody has answered yet.
answers = Answers
slot-answers = { $yes } can come, { $maybe } maybe
webhooks-about = Programs and channels that are told what has changed.
address = Address
address-hint = Only its beginning is shown. Leave it as it is to keep the address.
channel = ID of the channel
secret = Secret
secret-once = Copy it now: it is not shown again. The receiver checks with it who sends.
new-secret = Make another secret
new-secret-about = For 24 hours the former one signs as well.
new-webhook = New webhook: { $format }
make-webhook = New webhook
webhook-of-slack = Slack
webhook-of-discord = Discord
webhook-of-traq = traQ
webhook-of-program = A program
webhook-of-slack-about = In Slack, create an app with “Incoming Webhooks”, add it to a channel, and copy the webhook URL. Mattermost and Rocket.Chat work alike.
webhook-of-discord-about = In Discord, open the settings of the channel, then Integrations, Webhooks, New Webhook, Copy Webhook URL.
webhook-of-traq-about = In traQ, make a webhook with a secret. The address is https://…/api/v3/webhooks/ and its id.
webhook-of-program-about = An https address that takes signed JSON (Standard Webhooks).
webhook-name = Name in this list
webhook-language = Language of the messages
webhook-types = What to send
webhook-announcements = New events and changes
webhook-cancellations = Cancelled events
webhook-digests = Rooms and events of each day
webhook-reminders = Reminders to answer
webhook-events = Events
webhook-series = Series of events
webhook-rooms = Rooms
webhook-polls = Polls
webhook-groups = Groups
webhook-works = working
webhook-fails = failing
save-and-test = Save and send a test
delete-webhook = Delete this webhook?
delete-webhook-about = Nothing is sent any more. This cannot be undone.
already-over = Already over
rule-not-a-web-address-url = This must be the whole address, beginning with https://, without a user name. It must lead to the internet or to a network of --webhook-networks.
unmarked-is-no = A time without a mark counts as No.
