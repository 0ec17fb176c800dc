import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AgentService, readMessage, type Message } from './agent-service';
import type { ActiveFaults } from './active-faults';
import type { Effect, Operation } from './faults';
import { readBody } from './input';
import type { JobKey, Jobs } from './jobs';
import type { Journal, JournalEntry } from './journal';
import { closeConnection, encodedJsonResponse, jsonResponse, type Reaction } from './reaction';

/** The parts of a running sandbox. */
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
 * Decides the response to one request to the agent service: the faults act before, during and after the contract.
 *
 * A message whose body was read is processed even if its client has disconnected, because a real agent service does the same. A client
 * that timed out must expect this.
 *
 * @throws Error if the client disconnects before its body was read, or if the sandbox closes
 */
export async function decideReaction(context: RequestContext, parts: SandboxParts): Promise<Reaction> {
  const { req, operation } = context;
  const findEffect = createEffectFinder(context, parts);
  const unread = findEffect('instead', ({ processed }) => processed === 'unread');
  if (unread !== undefined) return unread.react(req.url ?? '');
  const message = await readMessageBody(context, parts);

  const wait = findEffect('wait');
  if (wait !== undefined && wait.processed !== 'before') await pause(wait.ms, context, parts);
  if (wait?.processed === 'never') return closeConnection;
  const instead = findEffect('instead', ({ processed }) => operation === 'get' || processed === 'no');
  const reaction = instead?.react(req.url ?? '') ?? applyContract(context, message, parts, findEffect);
  if (instead === undefined && wait?.processed === 'before') await pause(wait.ms, context, parts);
  return reaction;
}

type EffectFinder = <K extends Effect['kind']>(
  kind: K,
  accepts?: (effect: Extract<Effect, { kind: K }>) => boolean,
) => Extract<Effect, { kind: K }> | undefined;

/** Returns a function that finds the first fault that acts on this request, and records the fault in the journal. */
function createEffectFinder(
  { entry, projectId, jobId, operation }: RequestContext,
  { faults, journal }: SandboxParts,
): EffectFinder {
  return (kind, accepts) => {
    const found = faults.applyFirstEffect(kind, { projectId, jobId }, operation, accepts);
    if (found !== undefined) journal.update(entry, { faults: [...entry.faults, found.name] });
    return found?.effect;
  };
}

/** Reads the body of a request. Returns null for a read of the job, whose body is ignored. */
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

/** Waits. @param ms the duration in milliseconds, or null to wait until the request is released */
async function pause(ms: number | null, key: JobKey, { faults, closing }: SandboxParts): Promise<void> {
  await (ms === null ? faults.hold(key) : sleep(ms, undefined, { signal: closing }));
}

function applyContract(
  context: RequestContext,
  message: Message | null,
  parts: SandboxParts,
  findEffect: EffectFinder,
): Reaction {
  const { req, entry, operation, projectId, jobId } = context;
  const { service, faults, journal, now } = parts;
  const request = { projectId, jobId, operation, method: req.method ?? '', key: entry.key, message };
  const plan = () => findEffect('turn')?.plan(faults.random) ?? {};
  const handled = service.handle(request, plan);
  if (handled.rejection !== null) return handled.rejection;
  const { life, turn } = handled;
  if (turn !== null) {
    journal.update(entry, { processed: true, turn });
    const instead = findEffect('instead', ({ processed }) => processed === 'yes');
    if (instead !== undefined) return instead.react(req.url ?? '');
  }
  const current = turn === null ? life.read() : life.job();
  const { job, names } = faults.alter(current, life, context, operation, now());
  journal.update(entry, { faults: [...entry.faults, ...names] });
  const encoding = findEffect('encode')?.encoding;
  return encoding === undefined ? jsonResponse(200, job) : encodedJsonResponse(200, job, encoding);
}
