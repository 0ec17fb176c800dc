import { Readable } from 'node:stream';
import { runCli } from '../../src/cli/program';

async function helpOf(words: readonly string[]): Promise<string> {
  let help = '';
  await runCli({
    args: [...words, '--help'],
    env: {},
    stdin: Readable.from([]),
    stdout: { write: (text) => (help += text) },
    stderr: { write: () => true },
    commandPrefix: 'agent-follow-up',
    version: '0.0.0',
  });
  return help;
}

/** Returns the help of a command and of all commands below it. */
async function helpOfAll(words: readonly string[]): Promise<string[]> {
  const help = await helpOf(words);
  const [, list = ''] = help.split(/^Commands:$/m);
  const names = [...list.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = '']) => name);
  const texts = [help];
  for (const name of names.filter((each) => each !== 'help'))
    texts.push(...(await helpOfAll([...words, name])));
  return texts;
}

/** Returns the help of every command of the CLI. */
export async function createCliHelp(): Promise<string> {
  // The lines of the help must not depend on the width of the terminal.
  const { isTTY } = process.stdout;
  process.stdout.isTTY = false;
  try {
    return (await helpOfAll([])).join(`\n${'-'.repeat(80)}\n\n`);
  } finally {
    process.stdout.isTTY = isTTY;
  }
}
