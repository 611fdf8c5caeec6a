// Resolves no name, so that a server reaches this machine only.
const dns = require("node:dns")

function failure(name) {
	return Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND", hostname: name })
}

dns.lookup = (name, options, done) => process.nextTick(done ?? options, failure(name))
dns.promises.lookup = async (name) => {
	throw failure(name)
}
