import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { z } from 'zod';
import { decideReaction, type SandboxParts } from './handle-request';
import type { Operation } from './faults';
import { parseWithSchema, InputError, parseJson, readBody } from './input';
import type { JobKey } from './jobs';
import type { JournalEntry } from './journal';
import { errorResponse, jsonResponse, type Reaction, textResponse } from './reaction';

/** The HTTP server. It assigns each path to its handler, and adds a journal entry and a log line for each request. */
export class SandboxServer {
  private readonly server: Server;

  /** @param log receives one line per request */
  constructor(
    private readonly parts: SandboxParts,
    private readonly log: (line: string) => void,
  ) {
    this.server = createServer((req, res) => {
      this.serve(req, res).catch((error: unknown) => {
        this.logFailure(error);
        req.socket.destroy();
      });
    });
  }

  /** Listens at the port, or at a free port if `port` is 0. @returns the port */
  async listen(port: number, host: string): Promise<number> {
    this.server.listen(port, host);
    await once(this.server, 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  /** Closes every connection immediately, including connections with a request in progress. */
  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  private async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const closed = new Promise<void>((resolve) => res.once('close', resolve));
    // An error of writing to a disconnected client is ignored, because the journal has the ending `caller-gone`.
    res.on('error', () => undefined);
    const [path = ''] = (req.url ?? '').split('?', 1);
    const entry = this.openEntry(req, path);
    let cut: ReturnType<Reaction>;
    const ended = closed.then(() => {
      const ending = cut ?? this.ending(res);
      const status = res.headersSent ? res.statusCode : null;
      const endedAt = new Date(this.parts.now()).toISOString();
      if (entry !== undefined) this.parts.journal.update(entry, { status, ending, endedAt });
      return ending;
    });
    const reaction = await this.reaction(req, path, entry);
    if (reaction !== undefined && !res.closed) cut = reaction(req, res);
    const ending = await ended;
    const outcome = ending === 'answered' ? res.statusCode : ending;
    const tookMs = Math.round(performance.now() - startedAt);
    // A path has no control characters, because Node's parser rejects them.
    this.log(`${req.method ?? ''} ${path.slice(0, 200)} ${outcome} ${tookMs} ms${note(entry)}`);
  }

  /** Returns the reaction to a request, or undefined if the connection is already closed. */
  private async reaction(
    req: IncomingMessage,
    path: string,
    entry: JournalEntry | undefined,
  ): Promise<Reaction | undefined> {
    try {
      if (entry === undefined) {
        const pull = /^\/pull\/(\d{1,9})$/.exec(path)?.[1];
        return pull === undefined
          ? await handleControl(req, path, this.parts)
          : this.pullRequest(Number(pull));
      }
      const { operation, projectId, jobId } = entry;
      if (operation === null || projectId === null || jobId === null)
        return errorResponse(404, 'no such path');
      return await decideReaction({ req, entry, operation, projectId, jobId }, this.parts);
    } catch (error) {
      if (this.parts.closing.aborted || req.socket.destroyed) return undefined;
      this.logFailure(error);
      return errorResponse(500, 'the sandbox failed because of a bug; its log has the error');
    }
  }

  /** Logs a bug of the sandbox. A bug ends one request, not the process. */
  private logFailure(error: unknown): void {
    this.log(`the sandbox failed: ${inspect(error)}`);
  }

  /** Opens a journal entry. Returns undefined for a request that is not for the agent service. */
  private openEntry(req: IncomingMessage, path: string): JournalEntry | undefined {
    if (/^\/(sandbox|pull)(\/|$)/.test(path)) return undefined;
    const nowhere = { operation: null, projectId: null, jobId: null };
    return this.parts.journal.open({
      time: new Date(this.parts.now()).toISOString(),
      method: req.method ?? '',
      path: req.url ?? '',
      key: this.parts.service.keyState(req.headers.authorization),
      traceparent: String(req.headers.traceparent ?? '') || null,
      ...(agentPath(path) ?? nowhere),
    });
  }

  private ending(res: ServerResponse): JournalEntry['ending'] {
    if (res.writableFinished) return 'answered';
    return this.parts.closing.aborted ? 'sandbox-closed' : 'caller-gone';
  }

  private pullRequest(number: number): Reaction {
    const opener = this.parts.jobs.findOpener(number);
    const plain = { 'content-type': 'text/plain; charset=utf-8' };
    if (opener === undefined) return textResponse(404, `Pull request ${number} does not exist.\n`, plain);
    const text = `Job ${opener.jobId} of project ${opener.projectId} opened pull request ${number}.`;
    return textResponse(200, `${text}\nThe pull request is simulated and has no repository.\n`, plain);
  }
}

/** Parses a path of the agent service. The segments are split before they are decoded, because an ID may contain an encoded slash. */
function agentPath(path: string): ({ readonly operation: Operation } & JobKey) | undefined {
  const [, projectId, jobId, tail] = /^\/v2\/agent\/([^/]+)\/job\/([^/]+)(\/message)?$/.exec(path) ?? [];
  if (projectId === undefined || jobId === undefined) return undefined;
  try {
    const key = { projectId: decodeURIComponent(projectId), jobId: decodeURIComponent(jobId) };
    return { operation: tail === undefined ? 'get' : 'message', ...key };
  } catch (error) {
    // A path that is not percent-encoded UTF-8 is not a path of the agent service.
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function note(entry: JournalEntry | undefined): string {
  if (entry === undefined) return '';
  const turn = entry.turn === null ? '' : ` · processed as turn ${entry.turn}`;
  return turn + (entry.faults.length === 0 ? '' : ` · fault ${entry.faults.join(', ')}`);
}

const keySchema = z.strictObject({ access: z.enum(['write', 'read-only']).default('write') });

/** The control endpoints, which `GET /sandbox` lists. A missing body is an empty object. */
const ENDPOINTS: Readonly<Record<string, (parts: SandboxParts, body: unknown) => unknown>> = {
  'GET /sandbox': () => ({ endpoints: Object.keys(ENDPOINTS) }),
  'GET /sandbox/journal': ({ journal }) => ({ entries: journal.entries() }),
  'GET /sandbox/jobs': ({ jobs }) => ({ jobs: jobs.all() }),
  'POST /sandbox/jobs': ({ jobs }, body) => ({ jobs: jobs.addFrom(body) }),
  'POST /sandbox/faults': ({ faults }, body) => {
    faults.set(body);
    return {};
  },
  'DELETE /sandbox/faults': ({ faults }) => {
    faults.clear();
    return {};
  },
  'POST /sandbox/release': ({ faults }) => ({ released: faults.release() }),
  'POST /sandbox/keys': ({ service }, body) => ({
    key: service.createKey(parseWithSchema(keySchema, body).access),
  }),
  'DELETE /sandbox/keys': ({ service }) => {
    service.expireKeys();
    return {};
  },
};

/**
 * Handles the control endpoints under `/sandbox`, which users call with curl and tests call from other processes. The endpoints need no
 * key. They reject requests with `Origin`, because a web page in a browser sends this header.
 */
async function handleControl(req: IncomingMessage, path: string, parts: SandboxParts): Promise<Reaction> {
  if (req.headers.origin !== undefined)
    return errorResponse(403, 'the control endpoints reject requests from web pages (Origin header)');
  const endpoint = ENDPOINTS[`${req.method ?? ''} ${path}`];
  if (endpoint === undefined)
    return errorResponse(404, 'this control endpoint does not exist; GET /sandbox lists the endpoints');
  try {
    const body = await readBody(req);
    if (body === null) throw new InputError('the body is too large');
    return jsonResponse(200, endpoint(parts, body.length === 0 ? {} : parseJson(body)));
  } catch (error) {
    if (error instanceof InputError) return errorResponse(400, error.message);
    throw error;
  }
}
