/** Writes the table of error codes in docs/client.md, one row for each code of the client. Run it with `npm run docs`. */
import path from 'node:path';
import type { FollowUpErrorCode } from '../src/core/errors';
import { writeTable } from './request-docs';

export const ERRORS_FILE = path.join(__dirname, '../docs/client.md');

const SENDS_BY_RECEIPT = 'the receipt says it';
const NOTHING = 'nothing';
const NO_EFFECT = 'nothing is changed';
const IN_HISTORY = 'nobody knows; the history says it';

/** Of each code: the cause; what was started, sent or changed; what to do. A code without a row does not compile. */
const ERRORS: Readonly<Record<FollowUpErrorCode, readonly [cause: string, effect: string, todo: string]>> = {
  INVALID_REQUEST: [
    'an input is invalid; `problems` has every field. With a receipt: the worker refused the request',
    NOTHING,
    'correct the input; after a refusal by the worker, under a new `requestId`',
  ],
  CONFLICT: [
    'the name is taken by another message, batch or schedule',
    NOTHING,
    'give a new message a new name; to see the existing one, use its id',
  ],
  NOT_CONFIRMED: [
    'the call ended before the start was confirmed: its `timeout`, `close()`, or a server that is away (`cause`)',
    'nobody knows',
    'repeat the same call; nothing is sent twice',
  ],
  NO_ANSWER: [
    'the `timeout` passed, or no worker answered; the message says what the server knows',
    '`start` and `execute`: it was started, `workflowId` is its id. Any other call may still take effect',
    'come back with `getHandle(workflowId)`, or start a worker',
  ],
  CLOSED: ['the client was closed', 'what was started continues', 'use a new client'],
  REJECTED: [
    'the service refused the message, or the job was active and `whenActive` is `reject`',
    SENDS_BY_RECEIPT,
    'mend the cause, then `retry()`',
  ],
  DELIVERY_UNKNOWN: [
    'nobody can tell whether the message arrived',
    'one POST, perhaps processed',
    'look at the job; if the message is not there, send it under a new `requestId`',
  ],
  DEADLINE_EXCEEDED: [
    'the deadline passed',
    SENDS_BY_RECEIPT,
    'look at the job; if nothing was sent, `retry()`',
  ],
  JOB_NOT_FOUND: [
    'the service has no such job, or has it no longer',
    SENDS_BY_RECEIPT,
    'check project and job',
  ],
  CANCELLED: [
    'somebody cancelled the follow-up',
    SENDS_BY_RECEIPT,
    'the agent continues if the message arrived',
  ],
  TERMINATED: ['somebody terminated the workflow', IN_HISTORY, 'look at the job'],
  TIMED_OUT: [
    'the workflow exceeded a timeout that its caller set',
    IN_HISTORY,
    'look at the job; set no timeout',
  ],
  UNEXPECTED_FAILURE: [
    'something that is not foreseen: a bug, or another program’s workflow; `cause` has it',
    'nobody knows',
    'report it with its `cause`',
  ],
  NOT_FOUND: ['there is no such follow-up, batch or schedule', NO_EFFECT, 'check the id and the namespace'],
  ALREADY_ENDED: ['only a running one can do this; `state` says how it ended', NO_EFFECT, 'read its result'],
  STILL_RUNNING: ['only an ended one can do this', NO_EFFECT, 'wait for its end'],
  UPDATE_REFUSED: [
    'the workflow refuses the update, or has not begun; the message says why',
    NO_EFFECT,
    'read the message',
  ],
  RETRY_REFUSED: [
    'the receipt does not prove that the message was not sent or was rejected',
    NOTHING,
    'to send it once more, give it a new `requestId`',
  ],
  BATCH_FORGOTTEN: [
    'the server no longer has the items of the batch',
    NOTHING,
    'run it again from its items',
  ],
  LIMITS_UNAVAILABLE: [
    'the server does not tell or take limits',
    NO_EFFECT,
    'update the server; the message says why',
  ],
  MISCONFIGURED: [
    'variables, profile, TLS or data converter are wrong; the message names what to set',
    'a start may have been made',
    'correct the configuration, then repeat the same call',
  ],
  UNREACHABLE: [
    'Temporal does not answer',
    'no start was made; another call may have taken effect',
    'repeat the same call',
  ],
  UNAUTHORIZED: ['Temporal refuses the credentials', NOTHING, 'check `TEMPORAL_API_KEY`, TLS and namespace'],
  SERVER_REFUSED: ['Temporal refuses the call for any other reason', NOTHING, 'read the message'],
  NOT_SET_UP: ['namespace or search attributes are missing', NOTHING, 'run the commands of the message'],
};

/** The table of the error codes in Markdown. */
export function errorTable(): string {
  const rows = Object.entries(ERRORS).map(([code, row]) => [`\`${code}\``, ...row]);
  const head = ['code', 'cause', 'started, sent or changed', 'what to do'];
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

if (require.main === module) writeTable(ERRORS_FILE, errorTable());
