import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { inspect } from 'node:util';
import { truncate, visible } from '../src/core/text';
import { control } from './control';
import type { ControlParts } from './control-endpoints';
import { decide, type ExchangeParts } from './exchange';
import type { JournalEntry, JournalRecord } from './journal';
import { missingPage, pullRequestPage } from './pages';
import type { PullRequests } from './pull-requests';
import { type Answer, type CutOff, errorAnswer, htmlAnswer, perform, type Reaction } from './reaction';
import { readRoute, type Route } from './route';

export interface ServerParts extends ExchangeParts, ControlParts {
  readonly pullRequests: PullRequests;
  /** The prefix of every path of the agent service: `` or such as `/api`. */
  readonly basePath: string;
  /** Gets one line per request. */
  readonly log: (line: string) => void;
}

/** Marks the request that follows one of the sandbox's redirects. */
const REDIRECTED = 'redirected=1';

/** The HTTP server: which path is whose, the journal's entry of each request, and a line in the log. */
export class SandboxServer {
  private readonly connections = new WeakMap<Socket, number>();
  private readonly server: Server;
  private lastConnection = 0;

  constructor(private readonly parts: ServerParts) {
    this.server = createServer((req, res) => {
      this.serve(req, res).catch((error: unknown) => {
        this.failed(error);
        req.socket.destroy();
      });
    });
    this.server.on('connection', (socket: Socket) => {
      this.lastConnection += 1;
      this.connections.set(socket, this.lastConnection);
    });
  }

  /** @returns the port that was taken. */
  async listen(port: number, host: string): Promise<number> {
    this.server.listen(port, host);
    await once(this.server, 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  /** Ends every connection at once, whatever is under way on it. */
  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  private async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const closed = new Promise<void>((resolve) => res.once('close', resolve));
    // Writing to a caller who has just gone is no error here: the journal says that the caller has gone.
    res.on('error', () => undefined);
    const [path = '', query = ''] = (req.url ?? '').split('?', 2);
    const route = readRoute(path, this.parts.basePath);
    const onAgentService = route.kind === 'agent' || route.kind === 'unknown';
    const record = onAgentService ? this.openRecord(req, route) : undefined;
    let cut: CutOff | undefined;
    const ended = closed.then(() => {
      const ending = this.ending(res, cut);
      const durationMs = Math.round(performance.now() - startedAt);
      record?.update({ status: res.headersSent ? res.statusCode : null, ending, durationMs });
      return { ending, durationMs };
    });
    const reaction = await this.reaction(route, req, res, new URLSearchParams(query), record);
    if (reaction !== undefined && !res.closed) cut = perform(reaction, req, res);
    const { ending, durationMs } = await ended;
    const outcome = res.headersSent && ending === 'answered' ? String(res.statusCode) : ending;
    this.parts.log(
      `${printable(req.method ?? '')} ${printable(path)} ${outcome} ${durationMs} ms${note(record?.entry())}`,
    );
  }

  /** Undefined when there is nobody left to answer. */
  private async reaction(
    route: Route,
    req: IncomingMessage,
    res: ServerResponse,
    query: URLSearchParams,
    record: JournalRecord | undefined,
  ): Promise<Reaction | undefined> {
    try {
      if (route.kind === 'unknown') return errorAnswer(404, route.reason);
      if (route.kind === 'pull') return this.page(route.number);
      if (route.kind === 'control') return await control(req, route.segments, query, this.parts);
      if (record === undefined) throw new Error('a request to the agent service has no journal entry');
      const redirected = query.toString() === REDIRECTED;
      const { projectId, jobId, operation } = route;
      const request = { req, res, record, projectId, jobId, operation, redirected };
      return await decide({ ...request, addresses: this.addresses(req) }, this.parts);
    } catch (error) {
      if (this.parts.closing.aborted || req.socket.destroyed) return undefined;
      this.failed(error);
      return errorAnswer(500, 'the sandbox itself failed; its log says how');
    }
  }

  /** A bug of the sandbox: it is shown and ends one exchange, not the process. */
  private failed(error: unknown): void {
    this.parts.log(`the sandbox failed: ${inspect(error)}`);
  }

  private openRecord(req: IncomingMessage, route: Route): JournalRecord {
    const { journal, keys, now } = this.parts;
    const { authorization } = req.headers;
    const record = journal.open({
      time: new Date(now()).toISOString(),
      connection: this.connections.get(req.socket) ?? 0,
      method: req.method ?? '',
      path: req.url ?? '',
      headers: shownHeaders(req),
      key: keys.state(authorization),
    });
    if (route.kind === 'agent') {
      record.update({ operation: route.operation, projectId: route.projectId, jobId: route.jobId });
    }
    return record;
  }

  private ending(res: ServerResponse, cut: CutOff | undefined): JournalEntry['ending'] {
    if (cut !== undefined) return cut;
    if (res.writableFinished) return 'answered';
    return this.parts.closing.aborted ? 'sandbox-closed' : 'caller-gone';
  }

  private page(number: number): Answer {
    const found = this.parts.pullRequests.find(number);
    return found === undefined
      ? htmlAnswer(404, missingPage(`There is no pull request ${number}.`))
      : htmlAnswer(200, pullRequestPage(found));
  }

  /** `localhost` and `127.0.0.1` lead to the same socket and are two origins: no second server is needed. */
  private addresses(req: IncomingMessage): { same: string; other: string } {
    const target = `${(req.url ?? '').split('?', 1)[0] ?? ''}?${REDIRECTED}`;
    const { port } = this.server.address() as AddressInfo;
    const onLocalhost = req.headers.host?.startsWith('localhost') === true;
    return { same: target, other: `http://${onLocalhost ? '127.0.0.1' : 'localhost'}:${port}${target}` };
  }
}

function shownHeaders(req: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return 'authorization' in headers ? { ...headers, authorization: '[hidden]' } : headers;
}

function note(entry: JournalEntry | undefined): string {
  if (entry === undefined) return '';
  const turn = entry.turn === null ? '' : ` · processed as turn ${entry.turn}`;
  return turn + (entry.faults.length === 0 ? '' : ` · fault ${entry.faults.join(', ')}`);
}

/** A path in a log may neither move a terminal's cursor nor fill its screen. */
function printable(text: string): string {
  return truncate(visible(text), 200);
}
