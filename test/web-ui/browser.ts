import { constants } from 'node:fs';
import { access, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';

export interface Browser {
  readonly page: Page;
  /** Ends the browser and removes its profile. */
  close(): Promise<void>;
}

/** Without a sandbox of its own, because containers run as root; and silent, because it is to load one page only. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Opens a headless Chromium with a profile of its own: that of `CHROMIUM_PATH`, or Debian's.
 *
 * @throws Error that says what to install when there is none
 */
export async function openBrowser(viewport: { width: number; height: number }): Promise<Browser> {
  const executablePath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
  await access(executablePath, constants.X_OK).catch((error: unknown) => {
    throw new Error(
      `There is no Chromium at ${executablePath}: install it (apt-get install chromium), or set CHROMIUM_PATH to its executable.`,
      { cause: error },
    );
  });
  const profile = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-browser-'));
  const removeProfile = () => rm(profile, { recursive: true, force: true });
  let context: BrowserContext;
  try {
    context = await chromium.launchPersistentContext(profile, { executablePath, viewport, args: ARGUMENTS });
  } catch (error) {
    await removeProfile();
    throw error;
  }
  return {
    page: context.pages()[0] ?? (await context.newPage()),
    close: async () => {
      await context.close();
      await removeProfile();
    },
  };
}

/** The page of a follow-up in Temporal's Web UI. */
export function pageOf(uiUrl: string, workflowId: string, runId: string): string {
  return `${uiUrl}/namespaces/default/workflows/${encodeURIComponent(workflowId)}/${runId}`;
}
