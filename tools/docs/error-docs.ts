/** Makes the table of error codes in docs/client.md, with one row for each code of the client. */
import type { FollowUpErrorCode } from '../../src/contract/follow-up-error';

const SEE_RECEIPT = 'The receipt states whether the message was sent.';
const NOTHING = 'Nothing was started, sent or changed.';
const NOTHING_BY_REJECTED_REQUEST =
  'The rejected request changed nothing, but earlier requests of the same call may have taken effect. For example, `execute` may have started the follow-up.';
const SEE_HISTORY = "The workflow's history shows whether the message was sent.";

/** For each code, the cause, the effect and the required action. A code without a row does not compile. */
const ERRORS: Readonly<Record<FollowUpErrorCode, readonly [cause: string, effect: string, action: string]>> =
  {
    INVALID_REQUEST: [
      'An argument, an option or a field of the request is invalid, and `problems` names each one. If the error has a receipt, the workflow rejected the request.',
      'Without a receipt, nothing was started, sent or changed. With a receipt, the workflow has ended, and the receipt states whether the message was sent.',
      'Correct the input. If the error has a receipt, use a new `requestId`.',
    ],
    CONFLICT: [
      'The ID belongs to another message, batch or schedule, or other clients are changing the schedule at the same time.',
      NOTHING,
      'Use a new ID for a new message, batch or schedule. Repeat the update of a schedule.',
    ],
    START_UNCONFIRMED: [
      'The `timeout` passed, the client was closed, or the Temporal server was unreachable (see `cause`) before the start was confirmed.',
      'It is unknown whether the follow-up or batch was started.',
      'Repeat the same call, which sends no message twice. Exception: before a repeated `retry` of a batch with `includeUnknown`, call `progress()` to check whether the retry was started.',
    ],
    WAIT_TIMEOUT: [
      'The `timeout` passed, for example while the Temporal server was unreachable, or no worker responded in time.',
      'A started follow-up or batch continues. An update, a cancellation or another change may still take effect.',
      'Get the follow-up with `getHandle(workflowId)`. If no worker polls the task queue, start one.',
    ],
    CLIENT_CLOSED: ['The client was closed.', 'A started follow-up or batch continues.', 'Use a new client.'],
    REJECTED: [
      "The agent service rejected the message or the first read, the job was not idle and `whenActive` is `reject`, or the worker's configuration is wrong.",
      SEE_RECEIPT,
      'Fix the cause, and then call `retry()`.',
    ],
    DELIVERY_UNKNOWN: [
      'It is unknown whether the message arrived. The message of the error has the reason.',
      'A POST may have been made and processed.',
      'Check the job. If the message did not arrive, send it with a new `requestId`.',
    ],
    DEADLINE_EXCEEDED: [
      'The deadline passed.',
      SEE_RECEIPT,
      'Check the job. If the verdict is `not-sent`, call `retry()`.',
    ],
    JOB_NOT_FOUND: [
      'The agent service does not have the job, or no longer has it.',
      SEE_RECEIPT,
      'Check the project ID and the job ID.',
    ],
    CANCELLED: [
      'A client cancelled the follow-up.',
      SEE_RECEIPT,
      'If the message arrived, the agent continues. Check the job. If the verdict is `not-sent`, `retry()` sends the message.',
    ],
    TERMINATED: ['A client terminated the workflow.', SEE_HISTORY, 'Check the job.'],
    WORKFLOW_TIMED_OUT: [
      'The workflow exceeded a timeout that its caller set.',
      SEE_HISTORY,
      'Check the job. Start follow-ups without a workflow timeout.',
    ],
    UNEXPECTED_FAILURE: [
      'The workflow with this ID belongs to another program, your own iterable of items threw an error, or there is a bug.',
      'It is unknown whether anything was started or sent.',
      'Read the `cause` of the error. Report a bug.',
    ],
    NOT_FOUND: [
      'The namespace has no follow-up, batch or schedule with this ID. It may have been deleted, or be older than the retention.',
      'This call changed nothing. Exception: `execute` may have started the follow-up, which was then deleted.',
      'Check the ID and the namespace.',
    ],
    ALREADY_ENDED: [
      'The follow-up or batch has ended, and the call needs a running one. `state` is its last state.',
      NOTHING,
      'Read the result.',
    ],
    STILL_RUNNING: [
      'The follow-up or batch is running, and the call needs one that has ended.',
      NOTHING,
      'Wait for the result of the latest run.',
    ],
    UPDATE_REJECTED: [
      'The workflow rejected the update, or its start delay has not passed. The message has the reason.',
      NOTHING,
      'Read the message of the error.',
    ],
    RETRY_NOT_ALLOWED: [
      'The receipt does not prove that the message was not sent or was rejected, or the message was deleted with its history. If the error has no receipt, the run may have been retried before.',
      NOTHING,
      'If the message of the error names a later run, use its handle. Otherwise, start a follow-up with a new `requestId` to send the message again.',
    ],
    BATCH_ITEMS_UNAVAILABLE: [
      'The Temporal server no longer has the items of the batch. They were deleted, or are older than the retention.',
      NOTHING,
      'If the batch is not done, start it again with the same items.',
    ],
    INVALID_CONFIGURATION: [
      'A variable, the profile or the data converter is invalid.',
      'If the data converter fails, the follow-up or batch may have been started. Otherwise, nothing was started.',
      'Correct the settings that the message names, and repeat the call.',
    ],
    UNREACHABLE: [
      'The Temporal server does not respond.',
      'The call started nothing. An update, a cancellation or another change may still take effect.',
      'Repeat the same call.',
    ],
    UNAUTHORIZED: [
      'The Temporal server rejects the credentials, or denies access to the namespace.',
      NOTHING_BY_REJECTED_REQUEST,
      'Check `TEMPORAL_API_KEY`, the TLS variables and `TEMPORAL_NAMESPACE`, and repeat the call.',
    ],
    UNSUPPORTED_SERVER: [
      'The Temporal server is older than the oldest supported version.',
      NOTHING,
      'Upgrade the Temporal server to the version that the message names.',
    ],
    SERVER_ERROR: [
      'The Temporal server rejected the call for another reason, or the in-memory client for tests does not simulate the call.',
      NOTHING_BY_REJECTED_REQUEST,
      'Read the message of the error. If you can fix the cause, repeat the call.',
    ],
    NAMESPACE_NOT_SET_UP: [
      'The namespace or its search attributes are missing, or an attribute has the wrong type.',
      'Nothing was started or sent. `ensureSearchAttributes` may have registered attributes.',
      'Run the commands that the message names.',
    ],
  };

/** Returns the rows of the table, with the heading. */
export function errorRows(): string[][] {
  const rows = Object.entries(ERRORS).map(([code, row]) => [`\`${code}\``, ...row]);
  return [['code', 'cause', 'effect', 'required action'], ...rows];
}
