import type { ConnectionOptions } from '@temporalio/client';

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];

/** A shorter secret is not hidden, because ordinary words may contain it. */
const MIN_SECRET_CHARACTERS = 8;

/**
 * Returns a gRPC interceptor that hides Temporal's credentials in the errors of a client's connection, because a server or a gateway
 * may repeat a rejected key. A worker's log and health checks have their own redactor.
 */
export function hideSecretsInErrors(secrets: readonly string[]): Interceptor {
  const longSecrets = secrets.filter(({ length }) => length >= MIN_SECRET_CHARACTERS);
  const hide = (text: string) =>
    longSecrets.reduce((shown, secret) => shown.replaceAll(secret, '[redacted]'), text);
  const hasSecret = (value: string | Buffer) => longSecrets.some((secret) => value.includes(secret));
  const interceptor = (...[options, nextCall]: Parameters<Interceptor>) => {
    const call = nextCall(options);
    const start = call.start.bind(call);
    call.start = (metadata, listener) => {
      start(metadata, {
        onReceiveMetadata: (received) => listener?.onReceiveMetadata?.(received),
        onReceiveMessage: (message) => {
          listener?.onReceiveMessage?.(message);
        },
        onReceiveStatus: (status) => {
          const { details, metadata: trailers } = status;
          for (const name of Object.keys(trailers.getMap()))
            if (trailers.get(name).some(hasSecret)) trailers.remove(name);
          listener?.onReceiveStatus?.({ ...status, details: hide(details) });
        },
      });
    };
    return call;
  };
  // gRPC calls only the methods of the interface. The SDK does not export the class that the type requires.
  return interceptor as Interceptor;
}
