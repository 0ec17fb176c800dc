import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from '@jest/globals';

/** Creates a folder for the tests of a file or of a `describe`, and removes the folder after the tests. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'agent-follow-up-test-'));
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
