import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { misplacedModules } from '../../src/worker/bundle';
import { temporal } from '../harness/temporal';

describe('the workflow bundle', () => {
  it('holds the workflows, the contract and the SDK, and no package besides', () => {
    const code = readFileSync(temporal().bundlePath, 'utf8');
    expect(code).toContain('workflows/follow-up/follow-up.ts');
    expect(misplacedModules(code)).toEqual([]);
  });

  it('is refused with what has got in by mistake', async () => {
    // Inside the project, so that webpack finds the packages.
    const cache = path.resolve(__dirname, '../../.cache');
    mkdirSync(cache, { recursive: true });
    const folder = mkdtempSync(path.join(cache, 'bundle-'));
    try {
      const stray = path.join(folder, 'stray.js');
      writeFileSync(stray, `module.exports = require('zod');`);
      const workflowsPath = path.join(folder, 'index.js');
      writeFileSync(workflowsPath, `exports.followUp = async () => require(${JSON.stringify(stray)});`);
      const { code } = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
      const misplaced = misplacedModules(code);
      expect(misplaced).toContain('zod');
      expect(misplaced).toContain(stray);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
