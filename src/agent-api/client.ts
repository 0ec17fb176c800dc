import type { Dispatcher } from 'undici';
import type { JobAddress, JobAnswer, PostOutcome, SendTrouble } from '../core/activities';
import { percentEncode } from '../core/ids';
import { type ApiKeySource, checkedKey } from './api-key';
import { freshConnection, keptConnections, type Proxy } from './connections';
import { redactedFacts } from './error-facts';
import { exchange, type ExchangeLimits } from './exchange';
import { jobAnswer, sendOutcome } from './outcome';
import { KeyRedactor } from './redaction';
import { errorTrouble, type MessageContext, trouble } from './trouble';

/** The agent service's two operations. What the wire does is never thrown: it is a value. */
export interface AgentApi {
  /** The limit of one exchange in milliseconds. */
  readonly timeoutMs: number;
  /** One GET of the job, on a pooled connection. Trouble is an answer too. */
  getJob(address: JobAddress, limits?: ReadLimits): Promise<JobAnswer>;
  /** One POST of the message, on a connection of its own, and what it proved. It is never repeated here. */
  sendMessage(message: JobAddress & { readonly prompt: string }, limits?: SendLimits): Promise<PostOutcome>;
  /** Waits for the exchanges under way, each of which ends by its time limit, and closes every connection. */
  close(): Promise<void>;
}

export interface AgentApiOptions {
  /** `{base_url}`: an http or https URL; a path prefix and trailing slashes are fine. Checked with the configuration. */
  readonly baseUrl: string;
  readonly apiKey: ApiKeySource;
  /** The limit of one exchange in milliseconds, from connecting to the last byte of the body. */
  readonly timeoutMs: number;
  /** How an https base URL is reached. Nothing is taken from the environment here. @default directly */
  readonly proxy?: Proxy | undefined;
}

interface ReadLimits {
  /** Instead of the client's `timeoutMs`, where less time is left. */
  readonly timeoutMs?: number;
}

interface SendLimits extends ReadLimits {
  /**
   * Called once the connection is made (TLS included), before the first byte of the request is written, with nothing
   * asynchronous in between. A reason that it returns, or throws, destroys the connection, and nothing was sent. It
   * guards against a process that was frozen while it was connecting.
   */
  readonly beforeFirstByte?: () => string | undefined;
}

type Prepared =
  | { readonly headers: Record<string, string> }
  | { readonly repeatable: boolean; readonly problem: SendTrouble };

/** A usable connection takes no longer, and a send that still waits for one is provably not sent. */
const MAX_CONNECT_TIMEOUT_MS = 10_000;

/** `identity`: a compressed body would have to be bounded twice. */
const HEADERS = {
  accept: 'application/json',
  'accept-encoding': 'identity',
  'cache-control': 'no-cache',
  'user-agent': 'agent-follow-up',
};

/** The client of the agent service. It follows no redirect and repeats nothing. */
export function createAgentApi({ baseUrl, apiKey, timeoutMs, proxy }: AgentApiOptions): AgentApi {
  const endpoint = new Endpoint(baseUrl);
  const redactor = new KeyRedactor();
  const { origin } = endpoint;
  const reads = keptConnections({ origin, proxy, ...limitsOf(timeoutMs) });
  const underWay = new Set<Promise<unknown>>();
  let closed = false;

  function track<T>(work: Promise<T>): Promise<T> {
    underWay.add(work);
    return work.finally(() => underWay.delete(work));
  }

  function messageContext(operation: MessageContext['operation'], limits: ExchangeLimits): MessageContext {
    return { operation, host: endpoint.host, limits };
  }

  async function headers(): Promise<Record<string, string>> {
    // A source of the caller's own may give anything.
    const key = checkedKey(await apiKey.current(), 'the key of the agent service');
    redactor.remember(key);
    return { ...HEADERS, authorization: `Bearer ${key}` };
  }

  async function read(
    address: JobAddress,
    { timeoutMs: ownTimeoutMs = timeoutMs }: ReadLimits,
  ): Promise<JobAnswer> {
    const prepared = await prepare(address);
    if ('problem' in prepared) return { kind: 'trouble', ...prepared.problem };
    const limits = limitsOf(ownTimeoutMs);
    const request = {
      origin,
      method: 'GET',
      path: endpoint.jobPath(address),
      headers: prepared.headers,
    } as const;
    const result = await exchange(reads, request, limits, redactor.redact);
    return jobAnswer(result, address.jobId, messageContext('read', limits), Date.now());
  }

  async function send(
    message: JobAddress & { readonly prompt: string },
    { timeoutMs: ownTimeoutMs = timeoutMs, beforeFirstByte }: SendLimits,
  ): Promise<PostOutcome> {
    const prepared = await prepare(message);
    if ('problem' in prepared) {
      const { repeatable, problem } = prepared;
      return { verdict: 'not-sent', repeatable, answered: false, ...problem };
    }
    const limits = { ...limitsOf(ownTimeoutMs), beforeFirstByte };
    const request: Dispatcher.DispatchOptions = {
      origin,
      method: 'POST',
      path: endpoint.messagePath(message),
      headers: { ...prepared.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: message.prompt }),
    };
    const connection = freshConnection({ origin, proxy, ...limitsOf(ownTimeoutMs) });
    const result = await exchange(connection, request, limits, redactor.redact);
    await connection.destroy();
    return sendOutcome(result, message.jobId, messageContext('send', limits), Date.now());
  }

  /** The headers of a request, or why there can be none: then nothing was sent. */
  async function prepare(address: JobAddress): Promise<Prepared> {
    const impossible = addressProblem(address);
    if (impossible !== undefined) {
      return { repeatable: false, problem: trouble('invalid id', impossible) };
    }
    if (closed) return { repeatable: true, problem: trouble('closed', 'the agent API client is closed') };
    try {
      return { headers: await headers() };
    } catch (error) {
      return {
        repeatable: true,
        problem: { ...errorTrouble(redactedFacts(error, redactor.redact)), label: 'no key' },
      };
    }
  }

  return {
    timeoutMs,
    getJob: (address, limits = {}) =>
      track(
        read(address, limits).catch((error: unknown) => ({
          kind: 'trouble',
          ...errorTrouble(redactedFacts(error, redactor.redact)),
        })),
      ),
    sendMessage: (message, limits = {}) => track(send(message, limits)),
    async close() {
      closed = true;
      await Promise.allSettled([...underWay]);
      await reads.destroy();
    },
  };
}

function limitsOf(timeoutMs: number): ExchangeLimits {
  return { timeoutMs, connectTimeoutMs: Math.min(Math.ceil(timeoutMs / 3), MAX_CONNECT_TIMEOUT_MS) };
}

/** The agent service as one base URL names it: the origin to connect to, and the paths of its two operations. */
class Endpoint {
  /** Scheme, host and port. */
  readonly origin: string;
  /** The host and port as people write them, for messages. */
  readonly host: string;
  private readonly prefix: string;

  /** @param baseUrl an http or https URL; a path prefix and trailing slashes are fine */
  constructor(baseUrl: string) {
    const url = new URL(baseUrl);
    this.origin = url.origin;
    this.host = url.host;
    this.prefix = url.pathname.replace(/\/+$/, '');
  }

  /** The path of the get-job operation. */
  jobPath({ projectId, jobId }: JobAddress): string {
    return `${this.prefix}/v2/agent/${percentEncode(projectId)}/job/${percentEncode(jobId)}`;
  }

  /** The path of the message operation. */
  messagePath(address: JobAddress): string {
    return `${this.jobPath(address)}/message`;
  }
}

/**
 * Why no path can name this job, or undefined. `.` and `..` are folded by servers even when they are encoded, so the
 * message might reach another resource. The request checker refuses such ids before; this is the last gate.
 */
function addressProblem({ projectId, jobId }: JobAddress): string | undefined {
  for (const [name, id] of Object.entries({ projectId, jobId })) {
    if (id === '' || id === '.' || id === '..' || !id.isWellFormed()) {
      return `${name} ${JSON.stringify(id)} can't be a segment of a URL's path`;
    }
  }
  return undefined;
}
