/** The entry `agent-follow-up-client/testing`: the client itself; only what server and workers answer is made here. */
import { Client } from '@temporalio/client';
import { FOLLOW_UP_WORKFLOW } from '../core/names';
import { msNumberToTs } from '../temporal/sdk-internals';
import { FollowUpClient } from './follow-up-client';
import { COMPLETED, type Fate, InMemoryRun, payloads, type Start, type Update } from './in-memory-run';
import type { NamedRequest } from './start';

export type { Fate } from './in-memory-run';

/** `no-workers`: what is started stays in `starting`, and nobody answers for it. `away`: the server answers no call. */
export type Presence = 'all' | 'no-workers' | 'away';

/** A client whose follow-ups go as a test says. It has no batches and schedules. */
export class InMemoryFollowUpClient extends FollowUpClient {
  readonly #server: InMemoryServer;

  /** @param fateOf asked at each start and retry. By default each follow-up is completed, with a link */
  constructor(fateOf: (request: NamedRequest) => Fate = () => ({})) {
    const server = new InMemoryServer(fateOf);
    super(new Client({ connection: server.connection as never, namespace: 'in-memory' }));
    this.#server = server;
  }

  /** The request of each message that was, or may have been, sent. */
  get sent(): readonly NamedRequest[] {
    return this.#server.runs.flatMap(({ request, receipt }) =>
      Array.from({ length: receipt.delivery.sends }, () => request),
    );
  }

  /** Gives a follow-up that runs another fate. @throws Error where none of this id runs */
  setFate(workflowId: string, fate: Fate): void {
    this.#server.find({ workflowId }).settle(fate);
  }

  /** From now on, for each call. @default 'all' */
  setPresence(presence: Presence): void {
    this.#server.presence = presence;
  }
}

/* Of Temporal's API and of gRPC. */
const ALLOW_DUPLICATE_FAILED_ONLY = 2;
const GRPC = { DEADLINE_EXCEEDED: 4, NOT_FOUND: 5, ALREADY_EXISTS: 6, UNIMPLEMENTED: 12, UNAVAILABLE: 14 };

function refusal(code: keyof typeof GRPC, details: string): Error {
  return Object.assign(new Error(details), { code: GRPC[code], details, metadata: { get: () => [] } });
}

type Named = Partial<Record<'workflowId' | 'runId', string | null>>;
type Asked = Start & {
  readonly execution?: Named;
  readonly workflowExecution?: Named;
  readonly waitNewEvent?: boolean;
  readonly request?: Update;
};

class InMemoryServer {
  readonly runs: InMemoryRun[] = [];
  presence: Presence = 'all';
  readonly connection = {
    workflowService: new Proxy({}, { get: (_, name: string) => (asked: never) => this.answer(name, asked) }),
    plugins: [],
    withDeadline: <T>(_: unknown, call: () => Promise<T>) => call(),
    withAbortSignal: <T>(_: unknown, call: () => Promise<T>) => call(),
  };

  constructor(private readonly fateOf: (request: NamedRequest) => Fate) {}

  find({ workflowId, runId }: Named = {}): InMemoryRun {
    const found = this.runs.findLast(
      (run) => run.start.workflowId === workflowId && (!runId || run.runId === runId),
    );
    if (found === undefined) throw refusal('NOT_FOUND', 'workflow not found');
    return found;
  }

  private async answer(name: string, asked: Asked): Promise<unknown> {
    await Promise.resolve();
    if (this.presence === 'away') throw refusal('UNAVAILABLE', 'the server is away');
    const find = () => this.find(asked.execution ?? asked.workflowExecution);
    if (this.presence !== 'all' && /^(query|update)Workflow/.test(name))
      throw refusal('DEADLINE_EXCEEDED', 'no worker answers');
    switch (name) {
      case 'startWorkflowExecution':
        return this.start(asked);
      case 'describeWorkflowExecution':
        return { workflowExecutionInfo: find().info() };
      case 'listWorkflowExecutions':
        return { executions: this.runs.map((run) => run.info()), nextPageToken: new Uint8Array() };
      case 'getWorkflowExecutionHistory': {
        const { ended, start } = find();
        const started = { workflowExecutionStartedEventAttributes: { input: start.input } };
        return { history: { events: [asked.waitNewEvent ? await ended : started] } };
      }
      case 'describeTaskQueue':
        return { pollers: this.presence === 'all' ? [{ lastAccessTime: msNumberToTs(Date.now()) }] : [] };
      case 'requestCancelWorkflowExecution':
        return find().cancel();
      case 'queryWorkflow':
        return { queryResult: payloads(find().progress()) };
      case 'updateWorkflowExecution':
        return find().update(asked.request);
      default:
        throw refusal('UNIMPLEMENTED', `the client for tests has no ${name}`);
    }
  }

  private start(start: Start) {
    if (start.workflowType?.name !== FOLLOW_UP_WORKFLOW)
      throw refusal('UNIMPLEMENTED', 'the client for tests has no batches');
    const last = this.runs.findLast((run) => run.start.workflowId === start.workflowId);
    const isRetry = Number(start.workflowIdReusePolicy) === ALLOW_DUPLICATE_FAILED_ONLY;
    if (last && !(isRetry && last.status > COMPLETED)) throw refusal('ALREADY_EXISTS', 'already started');
    const run = new InMemoryRun(start);
    try {
      if (this.presence === 'all') run.settle(this.fateOf(run.request));
    } catch (error) {
      throw refusal('UNIMPLEMENTED', `fateOf throws ${String(error)}`);
    }
    this.runs.push(run);
    return { runId: run.runId };
  }
}
