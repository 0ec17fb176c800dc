/** The table of error codes in docs/client.md, one row for each code of the client. */
import type { FollowUpErrorCode } from '../../src/contract/follow-up-error';

const SENDS_BY_RECEIPT = 'see the receipt';
const NOTHING = 'nothing';
const IN_HISTORY = 'see the history';

/** Of each code: the cause; what was started, sent or changed; what to do. A code without a row does not compile. */
const ERRORS: Readonly<Record<FollowUpErrorCode, readonly [cause: string, effect: string, todo: string]>> = {
  INVALID_REQUEST: [
    'an input is invalid; `problems` has every field',
    NOTHING,
    'correct the input; if a worker refused it (there is a receipt), under a new `requestId`',
  ],
  CONFLICT: [
    'the name is taken by another message, batch or schedule',
    NOTHING,
    'give a new message a new name',
  ],
  START_UNCONFIRMED: [
    '`timeout`, `close()`, or a server that is away (`cause`), before the start was confirmed',
    'nobody knows',
    'repeat the same call',
  ],
  WAIT_TIMEOUT: [
    'the `timeout` passed, or no worker answered',
    'a start was made; any other call may take effect',
    'come back with `getHandle(workflowId)`, or start a worker',
  ],
  CLIENT_CLOSED: ['the client was closed', 'what was started continues', 'use a new client'],
  REJECTED: [
    'the service refused the message, or the job was active and `whenActive` is `reject`',
    SENDS_BY_RECEIPT,
    'mend the cause, then `retry()`',
  ],
  DELIVERY_UNKNOWN: [
    'nobody can tell whether the message arrived',
    'one POST, perhaps processed',
    'look at the job; perhaps send it under a new `requestId`',
  ],
  DEADLINE_EXCEEDED: [
    'the deadline passed',
    SENDS_BY_RECEIPT,
    'look at the job; if nothing was sent, `retry()`',
  ],
  JOB_NOT_FOUND: ['the service has no such job', SENDS_BY_RECEIPT, 'check project and job'],
  CANCELLED: [
    'somebody cancelled the follow-up',
    SENDS_BY_RECEIPT,
    'the agent continues if it got the message',
  ],
  TERMINATED: ['somebody terminated the workflow', IN_HISTORY, 'look at the job'],
  WORKFLOW_TIMED_OUT: [
    'the workflow exceeded a timeout that its caller set',
    IN_HISTORY,
    'look at the job; set no timeout',
  ],
  UNEXPECTED_FAILURE: [
    'a bug, another program’s workflow, or an error of your own items',
    'nobody knows',
    'read its `cause`; report a bug',
  ],
  NOT_FOUND: ['there is no such follow-up, batch or schedule', NOTHING, 'check the id and the namespace'],
  ALREADY_ENDED: ['only a running one can do this', NOTHING, 'read its result'],
  STILL_RUNNING: ['only an ended one can do this', NOTHING, 'wait for its end'],
  UPDATE_REJECTED: ['the workflow refuses the update, or has not begun', NOTHING, 'read the message'],
  RETRY_NOT_ALLOWED: [
    'the receipt does not prove `not-sent` or `rejected`',
    NOTHING,
    'to send it again, give it a new `requestId`',
  ],
  BATCH_ITEMS_UNAVAILABLE: [
    'the server no longer has the items of the batch',
    NOTHING,
    'unless it is done, run it again from its items',
  ],
  INVALID_CONFIGURATION: [
    'variables, profile or data converter are invalid',
    'a start may have been made',
    'set what the message names, repeat the call',
  ],
  UNREACHABLE: [
    'Temporal does not answer',
    'no start was made; another call may take effect',
    'repeat the same call',
  ],
  UNAUTHORIZED: ['Temporal refuses the credentials', NOTHING, 'check `TEMPORAL_API_KEY`, TLS and namespace'],
  SERVER_ERROR: ['Temporal refuses the call for any other reason', NOTHING, 'read the message'],
  NAMESPACE_NOT_SET_UP: ['namespace or search attributes are missing', NOTHING, 'run what the message names'],
};

/** The table of the error codes, with its heading. */
export function errorRows(): string[][] {
  const rows = Object.entries(ERRORS).map(([code, row]) => [`\`${code}\``, ...row]);
  return [['code', 'cause', 'effect', 'what to do'], ...rows];
}
