import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AgentService, readMessage, type Message } from './agent-service';
import type { ActiveFaults } from './active-faults';
import type { Effect, Operation } from './faults';
import { readBody } from './input';
import type { JobKey, Jobs } from './jobs';
import type { Journal, JournalEntry } from './journal';
import { closeConnection, jsonResponse, type Reaction } from './reaction';

/** What a running sandbox is made of. */
export interface SandboxParts {
  readonly service: AgentService;
  readonly jobs: Jobs;
  readonly faults: ActiveFaults;
  readonly journal: Journal;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Aborted when the sandbox closes. */
  readonly closing: AbortSignal;
}

export interface RequestContext extends JobKey {
  readonly req: IncomingMessage;
  readonly operation: Operation;
  readonly entry: JournalEntry;
}

/**
 * Decides one request to the agent service: the contract, and around it, in the order of the wire, the faults.
 *
 * What has been read is processed even if its caller has gone meanwhile: that is what a service does, and what a
 * client that gave up must reckon with.
 *
 * @throws Error when the caller goes away before its body was read, and when the sandbox closes
 */
export async function decideReaction(exchange: RequestContext, parts: SandboxParts): Promise<Reaction> {
  const { req, operation } = exchange;
  const strike = createEffectFinder(exchange, parts);
  const unread = strike('instead', ({ processed }) => processed === 'unread');
  if (unread !== undefined) return unread.react(req.url ?? '');
  const message = await readMessageBody(exchange, parts);

  const wait = strike('wait');
  if (wait !== undefined && wait.processed !== 'before') await pause(wait.ms, exchange, parts);
  if (wait?.processed === 'never') return closeConnection;
  const instead = strike('instead', ({ processed }) => operation === 'get' || processed === 'no');
  const reaction = instead?.react(req.url ?? '') ?? applyContract(exchange, message, parts, strike);
  if (instead === undefined && wait?.processed === 'before') await pause(wait.ms, exchange, parts);
  return reaction;
}

type EffectFinder = <K extends Effect['kind']>(
  kind: K,
  accepts?: (effect: Extract<Effect, { kind: K }>) => boolean,
) => Extract<Effect, { kind: K }> | undefined;

/** Looks for a fault that strikes this request, and writes it into the journal. */
function createEffectFinder(
  { entry, projectId, jobId, operation }: RequestContext,
  { faults, journal }: SandboxParts,
): EffectFinder {
  return (kind, accepts) => {
    const struck = faults.applyFirstEffect(kind, { projectId, jobId }, operation, accepts);
    if (struck !== undefined) journal.update(entry, { faults: [...entry.faults, struck.name] });
    return struck?.effect;
  };
}

/** Reads the body; null for a read of the job, whose body nobody looks at. */
async function readMessageBody(
  { req, entry, operation }: RequestContext,
  { journal }: SandboxParts,
): Promise<Message | null> {
  const body = await readBody(req);
  if (operation === 'get') return null;
  const message = readMessage(req.headers['content-type'], body);
  if ('prompt' in message) {
    const { prompt: text } = message;
    journal.update(entry, { prompt: { text, length: text.length } });
  }
  return message;
}

/** @param ms null: until the request is released */
async function pause(ms: number | null, key: JobKey, { faults, closing }: SandboxParts): Promise<void> {
  await (ms === null ? faults.hold(key) : sleep(ms, undefined, { signal: closing }));
}

function applyContract(
  exchange: RequestContext,
  message: Message | null,
  parts: SandboxParts,
  strike: EffectFinder,
): Reaction {
  const { req, entry, operation, projectId, jobId } = exchange;
  const { service, faults, journal, now } = parts;
  const request = { projectId, jobId, operation, method: req.method ?? '', key: entry.key, message };
  const plan = () => strike('turn')?.plan(faults.random) ?? {};
  const handled = service.handle(request, plan);
  if (handled.rejection !== null) return handled.rejection;
  const { life, turn } = handled;
  if (turn !== null) {
    journal.update(entry, { processed: true, turn });
    const instead = strike('instead', ({ processed }) => processed === 'yes');
    if (instead !== undefined) return instead.react(req.url ?? '');
  }
  const answered = turn === null ? life.read() : life.job();
  const { job, names } = faults.alter(answered, life, exchange, operation, now());
  journal.update(entry, { faults: [...entry.faults, ...names] });
  return jsonResponse(200, job);
}
