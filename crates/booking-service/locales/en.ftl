# The texts of the booking-service's pages.
start = Start
board = Board
events = Events
about = Rooms that the club holds, and what happens in them.
hello = Hello, { $name }
this-week = My week
no-events = No events.
free-today = Free today
nothing-free = No confirmed room is free for the rest of the day.
book-a-room = Book a room
book = Book
and-more = and { $n } more
at-most = This page shows at most { $n }.
today = Today
events-of = Events in { $month }

my-answer = Do you come?
answer-attendance = I come
answer-pending = Not sure
answer-absent = I do not come
who-comes = Who comes
come = { $n ->
    [one] 1 comes
   *[other] { $n } come
}
do-not-come = { $n ->
    [one] 1 does not come
   *[other] { $n } do not come
}
not-known = { $n ->
    [one] 1 has not answered
   *[other] { $n } have not answered
}
not-confirmed = (not confirmed)
not-free = (not free)
group = Group
group-hint = Its members are invited.
open = Open to everybody
open-hint = Anybody may come, not only members of the group.
shared = Shared
shared-hint = Others may use the room at the same time.
admins = Who may change it
created-by = Made by
tags = Tags
tags-hint = Separated by spaces.
names-hint = Sign-in names, separated by spaces.
new-tag = New tag
add = Add
calendar = Calendar
calendar-file = Calendar file (.ics)
google-calendar = Add to Google Calendar
duplicate = Again on another day
edit = Edit
delete = Delete
cancel = Cancel
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
end-date = Last day, if another
show-free-rooms = Show the rooms that are free then
room = Room
another-place = Another place
other-place = Another place
other-place-hint = Only if no room is chosen above.
name = Name
description = Description
taken-by = Already there at that time:
free-instead = The room is free at these times. Press one to take it instead:
present-version = As it is now
discard-mine = Leave it as it is now, and begin again

choose-who-you-are = Choose who you are
development = This is a development installation: anybody can sign in as any user.
no-users = There are no active users yet. Start the service with --demo or --directory-file to have some.
not-signed-in = You are not signed in
signed-in-as = You are signed in as { $name }
sign-in-as-other = Sign in as somebody else
sign-out-question = Sign out?
documentation = Documentation

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
answers-of = { $n } of { $all } have answered
new-poll = New poll
poll-event = To the event
my-times = When can I come?
slot-yes = Yes
slot-maybe = Maybe
slot-no = No
comment = Remark
answer = Answer
change-answer = Change my answer
results = Results
time = Time
total = Yes
best = Best
confirm-a-time = Choose a time
confirm-poll = { $name }: choose a time
confirm = Make it an event
delete-poll = Delete this poll?
delete-poll-about = The event of a poll stays. For 30 days it can be restored.
days-and-times = Days and times
first-day = First day
number-of-days = Number of days
times = Times of each day
times-hint = For example 13:00-15:00 18:00-20:00
show-grid = Show the grid
who-is-asked = Who is asked
no-group = No group
more-members = More members
poll-open-to-all = Everybody may answer
until-when = Answers until
ask = Ask

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
privileged = (privileged)
sign-in-name = Sign-in name
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
