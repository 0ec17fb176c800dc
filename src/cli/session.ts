import { FollowUpClient } from '../entries/client';
import { safeJson } from '../contract/text';
import { type Environment, readVariable } from '../temporal/connection-config';
import { type OutputStream, ProgressLine } from './render/progress-line';
import { printableLines } from './render/text';

/** The state and the output of one run of the CLI. */
export class Session {
  exitCode = 0;
  /** Whether `--json` was given. */
  isJson = false;
  /** Whether `--json` prints each document on one line (JSON Lines, jsonlines.org). */
  isJsonLines = false;
  /** Resolves at the first error of stdout: its reader exited, as in `batch run --json | head -1`, or the output can't be written. */
  readonly stdoutClosed: Promise<void>;
  /** The text that follows the reason of an early end: the work that continues, and the commands for it. */
  continuation = '';
  private readonly controller = new AbortController();
  private line: ProgressLine | undefined;
  private connected: Promise<FollowUpClient> | undefined;

  /** @param commandPrefix the words with which the user runs the CLI, for the commands in hints */
  constructor(
    readonly env: Environment,
    readonly stdin: AsyncIterable<Uint8Array>,
    private readonly stdout: OutputStream,
    private readonly stderr: OutputStream,
    private readonly commandPrefix: string,
  ) {
    this.stdoutClosed = new Promise((resolve) => {
      stdout.once?.('error', () => {
        resolve();
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

  /** The signal that ends the command early. Every call of the command has this signal. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Ends the command early. Only the first reason has an effect. */
  abort(reason: Error): void {
    this.controller.abort(reason);
  }

  /** Starts a progress line, which replaces the previous one. */
  startLine(): ProgressLine {
    this.clearLine();
    return (this.line = new ProgressLine(this.stderr, this.env));
  }

  clearLine(): void {
    this.line?.clear();
  }

  connect(): Promise<FollowUpClient> {
    const { env, signal } = this;
    const taskQueue = readVariable(env, 'FOLLOW_UP_TASK_QUEUE');
    return (this.connected ??= FollowUpClient.connect({ env, taskQueue, signal }));
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
