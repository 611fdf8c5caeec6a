// A PostgreSQL with pgvector in memory, for the tests. It prints the port that
// it listens on and ends with its standard input.
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'

process.stdin.resume()
process.stdin.on('end', () => process.exit(0))

const db = await PGlite.create({ extensions: { vector } })
const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 100 })
server.addEventListener('listening', event => console.log(event.detail.port))
await server.start()
