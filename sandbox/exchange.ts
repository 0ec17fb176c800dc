import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { AgentService, Handled } from './agent-service';
import type { FaultBoard, Strike } from './fault-board';
import type { FaultContext, FaultEffect, Operation } from './fault-row';
import type { Holds } from './holds';
import type { JobKey, Jobs } from './jobs';
import { journalPrompt, type JournalRecord } from './journal';
import type { ApiKeys } from './keys';
import { type MessageBody, readBody, readMessage } from './message-body';
import { jsonAnswer, type Reaction } from './reaction';

export interface ExchangeParts {
  readonly service: AgentService;
  readonly jobs: Jobs;
  readonly keys: ApiKeys;
  readonly faults: FaultBoard;
  readonly holds: Holds;
  readonly now: () => number;
  /** Bytes of a request's body. */
  readonly maxBodyBytes: number;
  /** Aborted when the sandbox closes. */
  readonly closing: AbortSignal;
}

export interface ExchangeRequest extends JobKey {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly operation: Operation;
  readonly record: JournalRecord;
  readonly addresses: FaultContext['addresses'];
  /** The request follows one of the sandbox's redirects. */
  readonly redirected: boolean;
}

/**
 * Decides one request to the agent service: the contract, and around it, in the order of the wire, the faults.
 *
 * What has been read is processed even if its caller has gone meanwhile: that is what a service does, and what a
 * client that gave up must reckon with.
 *
 * @throws Error when the caller goes away before its body was read, and when the sandbox closes.
 */
export async function decide(request: ExchangeRequest, parts: ExchangeParts): Promise<Reaction> {
  const strike = striker(request, parts);
  if (strike('key') !== undefined) parts.keys.expire(request.req.headers.authorization);
  const unread = strike('instead', (candidate) => whenProcessed(candidate) === 'unread');
  if (unread !== undefined) return replacement(unread, request, parts);
  const message = await takeIn(request, parts);

  const delay = strike('delay');
  const hold = strike('hold');
  const [delayed, held] = [delay?.values.text('processed'), hold?.values.text('processed')];
  if (delay !== undefined && delayed === 'after') await pause(delay, parts);
  if (held === 'after' || held === 'never') await parts.holds.wait(request, parts.closing);
  if (held === 'never') return { kind: 'close' };

  const before = strike(
    'instead',
    (candidate) => request.operation === 'get' || whenProcessed(candidate) === 'no',
  );
  if (before !== undefined) return replacement(before, request, parts);
  const handled = handle(request, message, parts, strike);
  const processed = handled.kind === 'job' && handled.turn !== null;
  const after = processed ? strike('instead', (candidate) => whenProcessed(candidate) === 'yes') : undefined;

  if (delay !== undefined && delayed === 'before') await pause(delay, parts);
  if (held === 'before') await parts.holds.wait(request, parts.closing);
  return after === undefined ? answer(handled, request, parts) : replacement(after, request, parts);
}

type Striker = <K extends FaultEffect['kind']>(
  kind: K,
  accepts?: (strike: Strike<K>) => boolean,
) => Strike<K> | undefined;

/** Looks for a fault that strikes this request, and writes it into the journal. */
function striker(request: ExchangeRequest, { faults }: ExchangeParts): Striker {
  return (kind, accepts = () => true) => {
    const struck = faults.strike(
      kind,
      request,
      request.operation,
      (candidate) => !(request.redirected && candidate.name === 'redirect') && accepts(candidate),
    );
    if (struck !== undefined) request.record.addFault(struck.name);
    return struck;
  };
}

function whenProcessed({ effect, values }: Strike<'instead'>): string {
  return effect.processed === 'parameter' ? values.text('processed') : effect.processed;
}

function replacement(
  { effect, values }: Strike<'instead'>,
  { addresses }: ExchangeRequest,
  { now }: ExchangeParts,
): Reaction {
  return effect.react(values, { now: now(), addresses });
}

async function pause(delay: Strike<'delay'>, { closing }: ExchangeParts): Promise<void> {
  await wait(delay.values.number('delay'), undefined, { signal: closing });
}

/** Reads the body; null for a read of the job, whose body nobody looks at. */
async function takeIn(
  request: ExchangeRequest,
  { maxBodyBytes }: ExchangeParts,
): Promise<MessageBody | null> {
  const { req, record, operation } = request;
  const body = await readBody(req, maxBodyBytes);
  if (operation === 'get') return null;
  const message = readMessage(req.headers['content-type'], body, maxBodyBytes);
  if ('prompt' in message) record.update({ prompt: journalPrompt(message.prompt) });
  return message;
}

function handle(
  request: ExchangeRequest,
  message: MessageBody | null,
  { service, keys }: ExchangeParts,
  strike: Striker,
): Handled {
  const { req, record, projectId, jobId, operation } = request;
  const key = keys.state(req.headers.authorization);
  const plan = () => (strike('turn') === undefined ? {} : { durationMs: 0 });
  const handled = service.handle(
    { key, projectId, jobId, operation, method: req.method ?? '', message },
    plan,
  );
  const turn = handled.kind === 'job' ? handled.turn : null;
  record.update(turn === null ? { key } : { key, processed: true, turn: turn.number });
  return handled;
}

function answer(handled: Handled, request: ExchangeRequest, { jobs, faults, now }: ExchangeParts): Reaction {
  if (handled.kind === 'refused') return handled.answer;
  const life = jobs.find(request);
  const { job, names } = faults.alter(handled.job, request, request.operation, {
    now: now(),
    beforeLastMessage: life?.beforeLastMessage(),
    settledSince: life?.settledSince() ?? null,
  });
  for (const name of names) request.record.addFault(name);
  return jsonAnswer(200, job);
}
