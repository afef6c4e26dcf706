// Preload of `ext-recorder run` for Node.js (NODE_OPTIONS=--require FILE): HTTP connections go through the proxy.
//
// Versions of Node before 24 ignore *_PROXY, and agents and dispatchers that a program makes itself ignore it in all
// versions. So this works at the level of TCP: before a socket connects to a server, the proxy is asked for a tunnel
// (CONNECT), and responds with the port of a listener on loopback for this one connection. The socket then connects to
// that port. Everything above, such as TLS and HTTP/2, stays as it is.
//
// Only connections of http, https, http2 and undici (fetch) are changed; a database, for example, is not HTTP.
'use strict';

const net = require('node:net');
const diagnostics = require('node:diagnostics_channel');

const proxy = /^127\.0\.0\.1:(\d+)$/.exec(process.env.EXT_RECORDER_PROXY || '');
const INSTALLED = Symbol.for('ext-recorder.proxy'); // NODE_OPTIONS and a command line may both name this file

if (proxy && !net.Socket.prototype[INSTALLED]) {
  install(Number(proxy[1]));
}

function install(proxyPort) {
  const connect = net.Socket.prototype.connect;
  let announced = null; // server of the connection that undici opens next

  const announce = ({ connectParams: { hostname, port, protocol } }) => {
    announced = { host: bare(hostname), port: Number(port || (protocol === 'https:' ? 443 : 80)) };
  };
  diagnostics.channel('undici:client:beforeConnect').subscribe(announce);

  net.Socket.prototype[INSTALLED] = true;
  net.Socket.prototype.connect = function (...args) {
    // net.connect and tls.connect give an array of options and callback; others give what they like.
    const given = Array.isArray(args[0]) ? args[0] : args;
    const options = given[0];
    const server = serverOf(options);
    const ofUndici = announced !== null && server !== null && same(announced, server);
    announced = null;
    const others = server === null || (!ofUndici && !isHttp(options));
    if (others || this.destroyed || isOwn(server, proxyPort) || isExcepted(server)) {
      return connect.apply(this, args);
    }
    const callback = given[given.length - 1];
    if (typeof callback === 'function') {
      this.once('connect', callback);
    }
    this.connecting = true; // as during the look-up of a name: what is written waits
    ask(connect, proxyPort, server, (error, port) => {
      if (this.destroyed || !this.connecting) {
        return;
      }
      if (error) {
        this.connecting = false;
        this.destroy(error);
        return;
      }
      const own = { ...options, host: '127.0.0.1', port, family: 4 };
      for (const name of ['hostname', 'path', 'lookup', 'localAddress', 'localPort', 'hints']) {
        delete own[name];
      }
      connect.call(this, own);
    });
    return this;
  };
}

// Ask the proxy for a tunnel; call done(error, port).
function ask(connect, proxyPort, server, done) {
  const socket = new net.Socket();
  let head = '';
  let isDone = false;
  const finish = (error, port) => {
    if (!isDone) {
      isDone = true;
      done(error, port);
    }
  };
  socket.setEncoding('latin1');
  socket.on('error', (error) => finish(error));
  socket.on('close', () => finish(failure(server, 'ECONNRESET')));
  socket.on('data', (text) => {
    head += text;
    if (!head.includes('\r\n\r\n')) {
      return;
    }
    const port = /^ext-recorder-port: (\d+)\r$/im.exec(head);
    const code = /^ext-recorder-errno: ([A-Z_]+)\r$/im.exec(head);
    if (port) {
      socket.unref(); // the proxy closes it when it has the connection
      finish(null, Number(port[1]));
    } else {
      finish(failure(server, code ? code[1] : 'ECONNRESET'));
      socket.destroy();
    }
  });
  connect.call(socket, { host: '127.0.0.1', port: proxyPort });
  const place = `${net.isIPv6(server.host) ? `[${server.host}]` : server.host}:${server.port}`;
  socket.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\nExt-Recorder-Listener: ?1\r\n\r\n`, 'latin1');
}

// The error with which Node reports that a server can't be reached.
function failure(server, code) {
  const isName = code === 'ENOTFOUND';
  const call = isName ? 'getaddrinfo' : 'connect';
  const place = isName ? server.host : `${server.host}:${server.port}`;
  const error = new Error(`${call} ${code} ${place}`);
  const about = isName ? { hostname: server.host } : { address: server.host, port: server.port };
  return Object.assign(error, { code, syscall: call }, about);
}

// The server of a connection; null for a path, a descriptor, or a call with other arguments.
function serverOf(options) {
  if (options === null || typeof options !== 'object' || options.path || !options.port) {
    return null;
  }
  const port = Number(options.port);
  return Number.isInteger(port) ? { host: bare(options.host || 'localhost'), port } : null;
}

function isHttp(options) {
  const protocols = Array.isArray(options.ALPNProtocols) ? options.ALPNProtocols : [];
  return (
    options._agentKey !== undefined || // http.Agent and https.Agent
    typeof options.createConnection === 'function' || // http.request without an agent
    /^(https?|wss?):$/.test(options.protocol || '') ||
    protocols.some((name) => name === 'h2' || name === 'http/1.1')
  );
}

// The proxy itself, for programs that use it.
function isOwn(server, proxyPort) {
  return server.port === proxyPort && ['127.0.0.1', 'localhost'].includes(server.host);
}

// NO_PROXY, which `ext-recorder run` has emptied, but the program or its user may set: names, .suffixes, ports, *
function isExcepted(server) {
  const entries = (process.env.NO_PROXY || process.env.no_proxy || '').toLowerCase().split(/[\s,]+/);
  return entries.filter(Boolean).some((entry) => {
    const [, name, port] = /^(.*?)(?::(\d+))?$/.exec(entry);
    if (port && !net.isIPv6(entry) && Number(port) !== server.port) {
      return false;
    }
    const suffix = bare(net.isIPv6(entry) ? entry : name).replace(/^\*?\.?/, '');
    return entry === '*' || (suffix !== '' && (server.host === suffix || server.host.endsWith(`.${suffix}`)));
  });
}

function same(one, other) {
  return one.host === other.host && one.port === other.port;
}

function bare(host) {
  return String(host).toLowerCase().replace(/^\[|\]$/g, '');
}
