# The texts of the pages that every service has.
skip = Skip to the content
pages = Pages
sign-in = Sign in
sign-in-and-send = Nothing was saved. Sign in in another tab, then load this page again to send the form once more.
sign-out = Sign out
sign-out-question = Sign out?
cancel = Cancel
choose-who-you-are = Choose who you are
development = This is a development installation: anybody can sign in as any user.
no-users = There are no active users yet. Start the service with --demo or --directory-file to have some.
for-developers = For developers
to-start = To the start page
notice-saved = Saved.
notice-deleted = Deleted.
undo = Undo
try-again = Try again
refused = Please check what is marked below.

problems = Problem codes
problems-about = Every refusal has one of these codes. Programs read it from the member code of the answer.

problem-400 = This cannot be done as it was asked
problem-400-about = Something in the request cannot be used.
problem-401 = Please sign in
problem-401-about = This page is for members of the club.
problem-403 = This is not allowed
problem-403-about = You are signed in, but you may not do this.
problem-account-inactive = Your account is not active
problem-account-inactive-about = It has been suspended or deactivated. Whoever runs this service can help.
problem-cross-site-request = This came from another site
problem-404 = There is nothing here
problem-404-about = The address is wrong, or what was here has been deleted.
problem-405 = This address is not a page
problem-405-about = A form is sent to this address. Please go back to the page that has it.
problem-408 = The request took too long to arrive
problem-408-about = Please try again, perhaps with a better connection.
problem-409 = This conflicts with something
problem-409-about = It is not possible as things are now.
problem-412 = Somebody has changed this meanwhile
problem-412-about = Nothing was saved. Compare both versions, and save again.
problem-413 = This is too large
problem-413-about = A form or file may not be that large.
problem-415 = This kind of file cannot be used
problem-415-about = Please send it by the form of the page.
problem-421 = Wrong address
problem-421-about = Use the address of this service that you know.
problem-422 = This was sent already
problem-422-about = The form has been sent before with other values. Look whether that is what you want. To do it again, send it once more.
problem-429 = Too many requests
problem-429-about = { $seconds ->
    [one] Please try again in one second.
   *[other] Please try again in { $seconds } seconds.
}
problem-daily-limit = That is enough for one day
problem-500 = Something went wrong on our side
problem-500-about = It is in the log. Please try again later.
problem-503 = The service cannot answer right now
problem-503-about = { $seconds ->
    [one] Please try again in one second.
   *[other] Please try again in { $seconds } seconds.
}

rule-required = Please fill this in.
rule-blank = Please write something.
rule-length = This is too short or too long.
rule-control-character = This has characters that cannot be used.
rule-invalid = This cannot be read.
rule-bad-date = Please write the day like 2026-04-01.
rule-bad-time = Please write the time like 18:30.
rule-range = This is too small or too large.
rule-not-allowed = This cannot be chosen.
rule-out-of-order = The end must be after the start.
rule-in-the-past = This must be in the future.
rule-nonexistent-time = The clocks skip this time on that day.
rule-duplicate = This is there twice.
rule-not-a-web-address = This must be an address that begins with https:// or http://.
rule-wrong-address = This address does not fit the kind of account.
rule-place-or-room = Choose either a room or another place.
rule-unknown-user = There is no such member.
no-member-called = There is no member { $name }.
rule-inactive-user = At least one of them must be an active member.
rule-unknown-group = There is no such group.
rule-unknown-room = There is no such room.

history = History
history-sentence = { $who } { $what }.
history-person = { $name }
history-by-session = Somebody
history-by-token = A program
history-by-proxy = Somebody
history-by-command = The operator
history-by-directory = The club's directory
history-by-import = The import
history-token = with the token { $name }
history-created = made it
history-deleted = deleted it
history-restored = brought it back
history-reverted = went back to an earlier version
history-changed = changed { $field } from { $old } to { $new }
history-changed-text = changed { $field }
history-set = set { $field } to { $new }
history-cleared = removed { $field }
history-added = added { $values } to { $field }
history-removed = removed { $values } from { $field }
history-quoted = “{ $text }”
history-more = { $n } more
history-yes = yes
history-no = no
history-gone = something that no longer exists
field-name = the name
field-description = the description
