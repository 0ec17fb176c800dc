import { chromium } from 'playwright-core';

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

/** Opens a headless Chromium: that of `CHROMIUM_PATH`, or Debian's (`apt-get install chromium`). */
export async function openBrowser(viewport: { width: number; height: number }) {
  const executablePath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
  const browser = await chromium.launch({ executablePath, args: ARGUMENTS });
  return { page: await browser.newPage({ viewport }), close: () => browser.close() };
}

/** The page of a follow-up in Temporal's Web UI. */
export function pageOf(uiUrl: string, workflowId: string, runId: string): string {
  return `${uiUrl}/namespaces/default/workflows/${encodeURIComponent(workflowId)}/${runId}`;
}
