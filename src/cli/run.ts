import { CommanderError } from 'commander';
import { EXIT } from './exit-codes';
import { Output, type OutputStream } from './output';
import { printableLines } from './printable';
import { allCommands, createProgram } from './program';
import { callName, Session } from './session';
import { tellTrouble } from './trouble';

export interface Invocation {
  /** The words after the program's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** `process.argv[1]`: how the starter was called. */
  readonly scriptPath: string | undefined;
  readonly version: string;
}

/** Runs one command of the starter. @returns the exit code; it throws nothing */
export async function run(invocation: Invocation): Promise<number> {
  const { args, env, stdin, stdout, stderr, scriptPath, version } = invocation;
  const output = new Output(stdout, stderr);
  const session = new Session(output, stdin, env, callName(scriptPath));
  const program = createProgram(session, version);
  for (const command of allCommands(program)) {
    command.configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(printableLines(text)),
    });
  }
  try {
    if (args.length === 0) {
      program.outputHelp({ error: true });
      return EXIT.usage;
    }
    await program.parseAsync(args, { from: 'user' });
    return session.exitCode;
  } catch (error) {
    const json = args.includes('--json');
    if (error instanceof CommanderError) {
      // Help and version were asked for; of anything else, commander has told the problem already.
      if (error.exitCode === 0) return EXIT.completed;
      if (json) output.json({ type: 'Usage', message: error.message, details: null });
      return EXIT.usage;
    }
    return tellTrouble(output, error, json, Boolean(env.DEBUG));
  } finally {
    await session.close();
  }
}
