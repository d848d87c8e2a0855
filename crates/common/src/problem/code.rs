//! The codes that any operation of either service may answer with.

crate::codes! {
    /// 400: one or more values of the body break a rule.
    INVALID_BODY = 400 "invalid-body", "The request body breaks a rule",
        "Each entry of `violations` names one value by JSON pointer (RFC 6901) and says what is wrong with it.";
    /// 400: the body is not JSON.
    MALFORMED_JSON = 400 "malformed-json", "The request body is not JSON",
        "The body could not be parsed as JSON (RFC 8259). `detail` gives line and column.";
    /// 400: a path or query parameter cannot be used.
    INVALID_PARAMETER = 400 "invalid-parameter", "A path or query parameter cannot be used",
        "Each entry of `violations` names one parameter and says what is wrong with it.";
    /// 400: the request cannot be read at all.
    BAD_REQUEST = 400 "bad-request", "The request cannot be read",
        "The request breaks HTTP itself, for example by a truncated body or an encoding that does not decode.";
    /// 401: the request has no credential.
    NOT_SIGNED_IN = 401 "not-signed-in", "Sign-in is needed",
        "The operation needs a session cookie or an API token, and the request carried none.";
    /// 401: the credential is not valid, or not any more.
    BAD_CREDENTIALS = 401 "bad-credentials", "The credential is not valid",
        "The session or token is unknown, expired or revoked. Sign in again or use another token.";
    /// 403: the caller may see the object but not do this.
    FORBIDDEN = 403 "forbidden", "Not allowed",
        "The caller is signed in but lacks the right that `detail` names.";
    /// 403: the caller's account is suspended or deactivated.
    ACCOUNT_INACTIVE = 403 "account-inactive", "The account is not active",
        "A suspended or deactivated account can do nothing that needs sign-in.";
    /// 403: more than the scope of the token allows.
    INSUFFICIENT_SCOPE = 403 "insufficient-scope", "The scope of the token does not allow this",
        "A token of scope `read` cannot change anything, and one of scope `board` can only read the board.";
    /// 403: a write with the session cookie, or a preflight request, from another site.
    CROSS_SITE = 403 "cross-site-request", "The request came from another site",
        "A browser may write only from pages of this service's own origin or of an allowed one.";
    /// 404: the path or object does not exist, or the caller may not see it.
    NOT_FOUND = 404 "not-found", "There is nothing here",
        "No such path, or no such object that the caller may see.";
    /// 405: the path exists, the method does not.
    METHOD_NOT_ALLOWED = 405 "method-not-allowed", "The method is not available here",
        "The path exists; the `Allow` header lists its methods.";
    /// 408: the client was too slow.
    REQUEST_TIMEOUT = 408 "request-timeout", "The request took too long to arrive",
        "The head or the body of the request did not arrive in time.";
    /// 409: the request conflicts with the present state.
    CONFLICT = 409 "conflict", "The request conflicts with the present state",
        "`detail` names the conflict. Read the present state and decide again.";
    /// 409: the name is taken.
    DUPLICATE_NAME = 409 "duplicate-name", "The name is taken",
        "Names of this kind are unique. Choose another one.";
    /// 409: the restoration of an object that is not deleted.
    NOT_DELETED = 409 "not-deleted", "The object is not deleted",
        "Only what is deleted can be restored.";
    /// 409: a directory that lacks too many members.
    SUSPICIOUS_DIRECTORY = 409 "suspicious-directory", "The directory lacks most members",
        "Nothing was changed, as the directory would take access from more than half of the active members. If it is right, \
        repeat the request with `force=true`.";
    /// 412: the object has changed since the caller read it.
    PRECONDITION_FAILED = 412 "precondition-failed", "The object has changed meanwhile",
        "`If-Match` names another version than the present one, whose tag is in `ETag`. Read the object and decide \
        again.";
    /// 413: the body is too large.
    TOO_LARGE = 413 "payload-too-large", "The request body is too large",
        "A body may have up to 1 MiB, that of a room import up to 2 MiB.";
    /// 415: the operation does not accept the media type of the body.
    UNSUPPORTED_MEDIA_TYPE = 415 "unsupported-media-type", "The media type of the body is not supported",
        "Send `application/json`, or the media type that the operation documents.";
    /// 416: the requested range is not in the file.
    RANGE_NOT_SATISFIABLE = 416 "range-not-satisfiable", "The file has no such part",
        "`Range` begins after the end of the file, whose length is in `Content-Range`.";
    /// 422: the idempotency key belongs to another request.
    KEY_REUSED = 422 "idempotency-key-reused", "The idempotency key belongs to another request",
        "The same `Idempotency-Key` came with another query or body within 24 hours. Use a new key for a new request.";
    /// 421: the `Host` of a request in development mode is not a loopback name.
    MISDIRECTED = 421 "misdirected-request", "Wrong host",
        "In development mode the service answers only requests whose `Host` is a loopback name such as localhost.";
    /// 429: the caller exceeds the rate limit.
    RATE_LIMITED = 429 "rate-limited", "Too many requests",
        "The caller has made more requests than allowed in a minute. Try again after `Retry-After` seconds.";
    /// 429: the caller has too many idempotency keys.
    TOO_MANY_KEYS = 429 "too-many-keys", "Too many idempotency keys",
        "The caller has 1,000 live idempotency keys or 4 MiB of stored answers. Keys expire after 24 hours.";
    /// 429: the caller has created and changed too much.
    DAILY_LIMIT = 429 "daily-limit", "Too much changed in a day",
        "The caller has created and changed as many objects as allowed in 24 hours. Try again after `Retry-After` seconds.";
    /// 500: the service has a fault.
    INTERNAL = 500 "internal-error", "Something went wrong on our side",
        "The failure is logged under the request id in `instance`. Please report it with that id.";
    /// 503: the database, a lock or another server is not available in time.
    UNAVAILABLE = 503 "unavailable", "The service cannot answer right now",
        "The database, a needed lock or another server is not available. Try again after `Retry-After` seconds.";
}
