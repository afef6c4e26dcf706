import javax.xml.bind.DatatypeConverter;
