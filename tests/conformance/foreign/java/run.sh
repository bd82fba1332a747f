# Java trusts what is in a store of its own format: one is made with the development CA in it.
set -e
rm -f trust.p12
keytool -importcert -noprompt -alias hubweir -file "$HUBWEIR_CA_FILE" -keystore trust.p12 -storepass hubweir >&2
exec java -Dfile.encoding=UTF-8 -Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=hubweir \
  -cp 'classes:libraries/*' Main
