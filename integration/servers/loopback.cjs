// Preloaded into server-everything, which listens on every interface and has
// no option against it: a listen without a host is one on 127.0.0.1. When the
// server listens, its port is written to descriptor 3. When standard input
// ends, as it does when the test process dies in whatever way, so does the
// server.
'use strict';
const fs = require('node:fs');
const net = require('node:net');

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  if (typeof port === 'object' || typeof rest[0] === 'string') {
    throw new Error('loopback.cjs: expected listen(port) without a host');
  }
  this.once('listening', () => {
    fs.writeSync(3, `${this.address().port}\n`);
    fs.closeSync(3);
  });
  return listen.call(this, Number(port), '127.0.0.1', ...rest);
};

process.stdin.on('end', () => process.exit(0)).resume();
