import { writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { readPrompt } from '../../../src/cli/flags/request-flags';
import { temporaryFolder } from '../../harness/temporary-folder';
import { MAX_PROMPT_BYTES } from '../../../src/core/text';

const folder = temporaryFolder();

const stdin = (...chunks: (string | Uint8Array)[]): Readable =>
  Readable.from(chunks.map((chunk) => Buffer.from(chunk)));

async function file(content: string | Uint8Array): Promise<string> {
  const name = path.join(folder, `prompt-${Math.random()}`);
  await writeFile(name, content);
  return name;
}

describe('a prompt', () => {
  it('comes from a file unaltered, line breaks, byte order mark and all', async () => {
    const text = '\ufeffeins\r\nzwei 🙂\n\n';
    expect(await readPrompt({ promptFile: await file(text) }, stdin())).toBe(text);
  });

  it('comes from stdin, also where a character is split between two chunks', async () => {
    const bytes = Buffer.from('ü');
    expect(await readPrompt({ promptFile: '-' }, stdin(bytes.subarray(0, 1), bytes.subarray(1)))).toBe('ü');
  });

  it('may be as large as the bound, and no larger; no more than that is read', async () => {
    expect(await readPrompt({ promptFile: '-' }, stdin('x'.repeat(MAX_PROMPT_BYTES)))).toHaveLength(
      MAX_PROMPT_BYTES,
    );
    let read = 0;
    function* endless() {
      for (;;) {
        read += 65_536;
        yield Buffer.alloc(65_536, 120);
      }
    }
    await expect(readPrompt({ promptFile: '-' }, Readable.from(endless()))).rejects.toThrow(
      `--prompt-file: stdin holds more than ${MAX_PROMPT_BYTES} bytes`,
    );
    expect(read).toBeLessThan(4 * MAX_PROMPT_BYTES);
  });

  it.each([
    ['both sources', { prompt: 'x', promptFile: 'y' }, 'give one of the two'],
    [
      'a file that is not there',
      { promptFile: '/nowhere/prompt' },
      '"/nowhere/prompt" can\'t be read (ENOENT: no such file',
    ],
    ['an argument that is not UTF-8', { prompt: 'caf\ufffd' }, '--prompt: is not UTF-8'],
    ['a folder', { promptFile: os.tmpdir() }, 'EISDIR'],
  ])('is refused with one message for %s', async (_, flags, message) => {
    await expect(readPrompt(flags, stdin())).rejects.toThrow(message);
  });

  it('is refused when it is empty or not UTF-8', async () => {
    await expect(readPrompt({ promptFile: '-' }, stdin())).rejects.toThrow('the message is empty');
    await expect(readPrompt({ promptFile: '-' }, stdin(Uint8Array.of(0xff)))).rejects.toThrow('is not UTF-8');
  });
});
