import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { Command } from 'commander';
import { addLineFlags, addRequestFlags, readPrompt } from '../../../src/cli/flags/request-flags';
import { REQUEST_OPTIONS, type RequestOption } from '../../../src/contract/request';
import { MAX_PROMPT_BYTES } from '../../../src/contract/text';
import { temporaryFolder } from '../../harness/temporary-folder';

it('each request option has a flag with help and default, and polling-initial of a batch has another default', () => {
  const helpOf = (command: Command, flag: string) =>
    command.options.find(({ long }) => long === flag)?.description ?? '';
  for (const [field, option] of Object.entries<RequestOption>(REQUEST_OPTIONS)) {
    const flag = '--' + field.replace('.', '-').replace(/[A-Z]/g, (letter) => '-' + letter.toLowerCase());
    const help = helpOf(addRequestFlags(new Command()), flag);
    expect(help).toContain(`(default: ${option.default})`);
    expect(help).toContain(option.help.replaceAll('`', ''));
  }
  expect(helpOf(addLineFlags(new Command()), '--polling-initial')).toContain('(default: 30s)');
});

describe('a prompt', () => {
  const folder = temporaryFolder();
  const stdin = (text: string | Uint8Array) => Readable.from([Buffer.from(text)]);

  it('is read unaltered from a file or stdin, including line breaks and byte order mark', async () => {
    const text = '\ufeffeins\r\nzwei 🙂\n\n';
    const promptFile = path.join(folder, 'prompt');
    await writeFile(promptFile, text);
    expect(await readPrompt({ promptFile }, stdin(''))).toBe(text);
    expect(await readPrompt({ promptFile: '-' }, stdin(text))).toBe(text);
  });

  it('that is too large is rejected and not read further', async () => {
    let read = 0;
    function* endless() {
      for (;;) {
        read += 65_536;
        yield Buffer.alloc(65_536, 120);
      }
    }
    await expect(readPrompt({ promptFile: '-' }, Readable.from(endless()))).rejects.toThrow(
      `--prompt-file: stdin has more than ${MAX_PROMPT_BYTES} bytes`,
    );
    expect(read).toBeLessThan(4 * MAX_PROMPT_BYTES);
  });

  it.each([
    [{ prompt: 'x', promptFile: 'y' }, '', 'set only one of the two'],
    [{ promptFile: '/nowhere/prompt' }, '', '"/nowhere/prompt" can\'t be read (ENOENT: no such file'],
    [{ promptFile: '-' }, '', 'the message is empty'],
    [{ promptFile: '-' }, Uint8Array.of(0xff), 'is not UTF-8'],
  ])('is rejected with one message: %j', async (flags, input, message) => {
    await expect(readPrompt(flags, stdin(input))).rejects.toThrow(message);
  });
});
