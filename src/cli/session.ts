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

/** The state and the output of one run of the CLI. */
export class Session {
  exitCode = 0;
  /** Whether the command has the option `--json`. */
  isJson = false;
  /** Whether `--json` prints each document on one line (JSON Lines, jsonlines.org). */
  isJsonLines = false;
  /** Resolves when the reader of stdout exits, as in `batch run --json | head -1`. */
  readonly stdoutClosed: Promise<'SIGPIPE'>;
  private connected: Promise<FollowUpClient> | undefined;

  /** @param commandPrefix the words with which the user runs the CLI, for the commands in hints */
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

  /** Prints to stdout: the document with `--json`, and otherwise the text, unless the text is empty. */
  print(document: unknown, text = ''): void {
    if (this.isJson) this.stdout.write(safeJson(document, this.isJsonLines ? 0 : 2) + '\n');
    else if (text !== '') this.stdout.write(printableLines(text) + '\n');
  }

  /** Prints progress, a hint or an error to stderr. */
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

  /** Prints the address of a workflow in Temporal's Web UI, if TEMPORAL_UI_URL is set. */
  async printWebUiLink(workflowId: string): Promise<void> {
    const base = readVariable(this.env, 'TEMPORAL_UI_URL')?.replace(/\/+$/, '');
    if (base === undefined) return;
    const { namespace } = await this.connect();
    const page = ['namespaces', namespace, 'workflows', workflowId].map(encodeURIComponent).join('/');
    this.printStatus(`Web UI      ${base}/${page}`);
  }

  async close(): Promise<void> {
    await (await this.connected?.catch(() => undefined))?.close();
  }
}

export function quoteForShell(word: string): string {
  return /^[\w%+,./:=@~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
