/**
 * The functions of the SDK that this project uses and that are not public; the linter allows their paths in this file alone. A
 * version of the SDK may move them, so that the client's peers begin at the version that the tests run with.
 *
 * - Payloads of raw answers (a pending activity's heartbeat, a first event) have no public decoder: a data converter's codecs and
 *   external storage must be applied as the SDK's own client applies them.
 * - Times of raw requests and answers are protobuf timestamps, whose conversion the SDK keeps to itself.
 */
export { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow';
export { msNumberToTs, optionalTsToDate, optionalTsToMs, tsToDate } from '@temporalio/common/lib/time';
