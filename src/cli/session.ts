import { FollowUpClient } from '../entries/client';
import { safeJson } from '../contract/text';
import { type Environment, readVariable } from '../temporal/connection-config';
import { printableLines } from './render/text';

export interface OutputStream {
  write(text: string): unknown;
  once?(event: 'error', listener: () => void): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** What every command needs. */
export class Session {
  exitCode = 0;
  /** Whether the command has the flag `--json`. */
  isJson = false;
  /** With it: a line for each document (jsonlines.org). */
  isJsonLines = false;
  /** Resolves when the reader of the results has gone, as in `batch run --json | head -1`. */
  readonly stdoutClosed: Promise<'SIGPIPE'>;
  private connected: Promise<FollowUpClient> | undefined;

  /** @param commandPrefix how the user calls the starter, for the commands in our hints */
  constructor(
    readonly env: Environment,
    readonly stdin: AsyncIterable<Uint8Array>,
    private readonly stdout: OutputStream,
    readonly stderr: OutputStream,
    private readonly commandPrefix: string,
  ) {
    this.stdoutClosed = new Promise((resolve) => {
      stdout.once?.('error', () => {
        resolve('SIGPIPE');
      });
    });
  }

  /** To stdout: with `--json` the document, else the text, if there is any. */
  print(document: unknown, text = ''): void {
    if (this.isJson) this.stdout.write(safeJson(document, this.isJsonLines ? 0 : 2) + '\n');
    else if (text !== '') this.stdout.write(printableLines(text) + '\n');
  }

  /** To stderr: progress, a hint or an error. */
  printStatus(text: string): void {
    this.stderr.write(printableLines(text) + '\n');
  }

  connect(): Promise<FollowUpClient> {
    const { env } = this;
    const taskQueue = readVariable(env, 'FOLLOW_UP_TASK_QUEUE');
    return (this.connected ??= FollowUpClient.connect({ env, taskQueue }));
  }

  command(...words: string[]): string {
    return [this.commandPrefix, ...words.map(quoteForShell)].join(' ');
  }

  /** Where a workflow can be seen in Temporal's Web UI, if TEMPORAL_UI_URL is set. */
  async printWebUiLink(workflowId: string): Promise<void> {
    const base = readVariable(this.env, 'TEMPORAL_UI_URL')?.replace(/\/+$/, '');
    if (base === undefined) return;
    const { namespace } = await this.connect();
    const page = ['namespaces', namespace, 'workflows', workflowId].map(encodeURIComponent).join('/');
    this.printStatus(`web ui      ${base}/${page}`);
  }

  async close(): Promise<void> {
    await (await this.connected?.catch(() => undefined))?.close();
  }
}

export function quoteForShell(word: string): string {
  return /^[\w%+,./:=@~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
