import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { eventually } from '../../tools/lib/eventually';

/** The example plugin of docs/temporal-plugins.md. */
export const TRACING = { FOLLOW_UP_PLUGINS: 'examples/tracing/plugin.js' };

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

/** A server that receives spans as an OpenTelemetry collector does (OTLP over HTTP with JSON). */
export class SpanReceiver {
  /** All received spans, in the order of their arrival. */
  readonly spans: Span[] = [];
  private readonly server = createServer((request, response) => {
    void text(request).then((body) => {
      const { resourceSpans } = JSON.parse(body) as OtlpRequest;
      this.spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)));
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });

  /** Runs a test with a receiver, which is closed at the end. */
  static async with(test: (receiver: SpanReceiver) => Promise<void>): Promise<void> {
    const receiver = new SpanReceiver();
    receiver.server.listen(0, '127.0.0.1');
    await once(receiver.server, 'listening');
    await test(receiver).finally(() => {
      receiver.server.close();
      receiver.server.closeAllConnections();
    });
  }

  /** The variables of a program that sends its spans to this receiver every 100 ms. */
  get env(): NodeJS.ProcessEnv {
    const { port } = this.server.address() as AddressInfo;
    return { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`, OTEL_BSP_SCHEDULE_DELAY: '100' };
  }

  /** Returns the names of a span and its ancestors, the span first. */
  path(span: Span | undefined): string[] {
    if (span === undefined) return [];
    return [span.name, ...this.path(this.spans.find(({ spanId }) => spanId === span.parentSpanId))];
  }

  /** Returns the spans with a name, in the order of their arrival. */
  named(name: string): Span[] {
    return this.spans.filter((span) => span.name === name);
  }

  /** Waits until a span with a name was received. */
  async waitFor(name: string): Promise<void> {
    await eventually(`the span ${name} was received`, () => this.named(name).length > 0);
  }

  /** Returns the spans that were received more than once. */
  repeated(): Span[] {
    return this.spans.filter(
      ({ spanId }, index) => this.spans.findIndex((each) => each.spanId === spanId) < index,
    );
  }
}
