import { printableJson, printableLines } from './text';

/** A stream of the process: results go to one, everything else to the other. */
export interface OutputStream {
  write(text: string): unknown;
  once?(event: 'error', listener: () => void): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** The output of a command: results on stdout; progress, hints and errors on stderr. */
export class Output {
  /** For commands that print several JSON documents: each is a line (jsonlines.org). */
  jsonLines = false;
  /** Resolves when the reader of the results has gone, as the one in `batch run --json | head -1` does. */
  readonly readerGone: Promise<{ readonly leftBy: 'SIGPIPE' }>;

  constructor(
    private readonly stdout: OutputStream,
    readonly stderr: OutputStream,
  ) {
    this.readerGone = new Promise((resolve) => {
      stdout.once?.('error', () => {
        resolve({ leftBy: 'SIGPIPE' });
      });
    });
  }

  /** A line of the result. */
  result(text: string): void {
    this.stdout.write(printableLines(text) + '\n');
  }

  /** The result, or a part of it, as one JSON document. */
  json(value: unknown): void {
    this.stdout.write(printableJson(value, this.jsonLines ? 0 : 2) + '\n');
  }

  /** A line of progress, a hint or an error. */
  note(text: string): void {
    this.stderr.write(printableLines(text) + '\n');
  }
}

/** A reader such as `head`, or a closed terminal, may end the output early. That is not an error. */
export function ignoreClosedPipes(...streams: NodeJS.WriteStream[]): void {
  for (const stream of streams) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
    });
  }
}
